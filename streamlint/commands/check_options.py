"""The options of ``streamlint check``, and those of them that stand for keys of the configuration."""

from __future__ import annotations

import argparse
import os

from streamlint import TYPE_CHECKING
from streamlint.commands.parser import Parser
from streamlint.config.settings import FORMATS, parse_toml
from streamlint.findings import LEVELS
from streamlint.support.errors import ConfigError

if TYPE_CHECKING:
    from typing import Any

LISTS = ("select", "ignore", "extend-select", "extend-ignore", "exclude", "extend-exclude")

EXAMPLES = (
    ("streamlint check", "this folder, as configured"),
    ("streamlint check src --select SL005,SL006", "two rules"),
    ("streamlint check src --diff", "what safe fixes would change"),
    ("streamlint check --since main", "only what touches changed lines"),
    ("streamlint check src --write-baseline known.json", "accept what is there"),
    ("streamlint check --output-format sarif:out.sarif --output-format concise", "for code scanning, and for the log"),
    ("streamlint check src --explain-silence src/loader.py:14", "why nothing is reported there"),
    ("streamlint check --shard 1/4 -o shard-1.json", "a quarter of the work, for `streamlint merge`"),
    ("git show HEAD:a.py | streamlint check - --stdin-filename a.py", "standard input"),
)


def build_parser() -> Parser:
    """The parser of ``check``."""
    parser = Parser("check", "Find CUDA stream misuse in files and folders.", EXAMPLES)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders; '-' is standard input (default: .)")
    add_rules(group := parser.add_argument_group("rules"))
    group.add_argument("--per-file-ignores", type=_comma_list, action="extend", metavar="PATTERN:RULE", help="rules not to run on files")
    _add_files(parser.add_argument_group("files"))
    _add_findings(parser.add_argument_group("reporting"))
    _add_fixes(parser.add_argument_group("fixes"))
    _add_output(parser.add_argument_group("output"))
    _add_configuration(parser.add_argument_group("configuration"))
    return parser


def overrides(options: argparse.Namespace) -> dict[str, Any]:
    """What the command line says in the keys of the configuration; a command may have few of ``check``'s options."""
    said = {name.replace("_", "-"): value for name, value in vars(options).items()}
    table: dict[str, Any] = {key: said[key] for key in (*LISTS, "cache-dir", "confidence") if said.get(key)}
    table.update({key: said[key] for key in ("preview", "respect-gitignore") if said.get(key) is not None})
    if pairs := said.get("per-file-ignores"):
        table["per-file-ignores"] = _per_file_ignores(pairs)
    if said.get("baseline") and not said["write-baseline"]:
        table["baseline"] = said["baseline"]
    return table


def inline_settings(text: str) -> dict[str, Any]:
    """The TOML of ``--config 'key = value'``."""
    return parse_toml(os.fsencode(text), f"--config '{text}'")


def add_rules(group: argparse._ArgumentGroup) -> None:
    """Which rules are on; ``overrides`` reads them."""
    words: dict[str, Any] = {"type": _comma_list, "action": "extend", "metavar": "RULE"}
    group.add_argument("--select", **words, help="rules to run: codes, names, prefixes of codes, ALL")
    group.add_argument("--ignore", **words, help="rules not to run")
    group.add_argument("--extend-select", **words, help="rules to run besides those that are on")
    group.add_argument("--extend-ignore", **words, help="rules not to run, besides those that are off")
    group.add_argument("--preview", action=argparse.BooleanOptionalAction, help="run preview rules, and rules in their wider form")


def add_exclusions(group: argparse._ArgumentGroup) -> None:
    """Which files are read."""
    group.add_argument("--exclude", type=_comma_list, action="extend", metavar="PATTERN", help="paths to exclude, instead of the default")
    group.add_argument("--extend-exclude", type=_comma_list, action="extend", metavar="PATTERN", help="further paths to exclude")
    group.add_argument("--force-exclude", action="store_true", help="apply exclusions to files that are named themselves, too")
    group.add_argument(
        "--no-default-excludes", dest="default_excludes", action="store_false", help="read tests, examples and vendored folders"
    )
    group.add_argument("--respect-gitignore", action=argparse.BooleanOptionalAction, help="exclude files that git ignores (default: yes)")


def _add_files(group: argparse._ArgumentGroup) -> None:
    add_exclusions(group)
    group.add_argument("--stdin-filename", metavar="PATH", help="the name of standard input")
    group.add_argument("--show-files", action="store_true", help="list the files that would be linted")


def _add_findings(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--baseline", metavar="FILE", help="report only findings that this file does not list")
    group.add_argument("--write-baseline", metavar="FILE", help="list all findings there, and exit 0")
    group.add_argument("--confidence", choices=LEVELS, help="report only findings that are at least so sure (default: low, all)")
    group.add_argument("--since", metavar="REV", help="report only findings on lines changed since a git revision")
    group.add_argument("--add-ignore", metavar="REASON", help="write suppression comments; alone, or --add-ignore=REASON")


def _add_fixes(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--fix", action="store_true", help="apply safe fixes, and report the remaining findings")
    group.add_argument("--unsafe-fixes", action="store_true", help="include fixes that may change behavior")
    group.add_argument("--diff", action="store_true", help="print what --fix would change, and exit 1 if it would")
    group.add_argument("--fix-only", action="store_true", help="apply fixes, and report no remaining findings")
    group.add_argument("--show-fixes", action="store_true", help="list what was fixed")
    group.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit 1 if anything was fixed")


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--output-format", action="append", metavar="FORMAT[:FILE]", help=f"{', '.join(FORMATS)}; repeatable, each with a file"
    )
    group.add_argument("-o", "--output-file", metavar="FILE", help="write findings there instead of to stdout")
    group.add_argument("--sort", choices=("place", "confidence"), default="place", help="the order of findings (default: by place)")
    group.add_argument("--profile", metavar="FILE", help="show and sort findings by their cost, as 'streamlint trace' wrote it in JSON")
    group.add_argument("--statistics", action="store_true", help="count findings by rule instead of showing them")
    group.add_argument("-e", "--exit-zero", action="store_true", help="exit 0 even when there are findings")
    add_color(group)
    group.add_argument("--coverage", action="store_true", help="say what was read and understood")
    group.add_argument("--coverage-file", metavar="FILE", help="write that as JSON")
    group.add_argument("--explain-silence", metavar="FILE:LINE", help="say why no finding stands at a line (nb.ipynb:cell 3:2)")
    group.add_argument("--shard", metavar="K/N", help="run the K-th of N shares, and write a report for 'streamlint merge'")
    group.add_argument("-w", "--watch", action="store_true", help="lint again whenever a file changes")
    group.add_argument("--timings", action="store_true", help="say where the time went")
    group.add_argument("-q", "--quiet", action="store_true", help="print findings only")
    group.add_argument("-v", "--verbose", action="store_true", help="say more about what was done")


def add_color(group: argparse._ArgumentGroup) -> None:
    """When to colour."""
    group.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="when to colour (default: auto)")


def add_configuration_files(group: argparse._ArgumentGroup) -> None:
    """Where settings come from; ``commands.running.configured`` reads them."""
    group.add_argument("--config", action="append", default=[], metavar="FILE|KEY=VALUE", help="a configuration file, or one setting")
    group.add_argument("--isolated", action="store_true", help="read no configuration file")


def add_settings(group: argparse._ArgumentGroup) -> None:
    """Where settings come from, and how a run is done."""
    add_configuration_files(group)
    group.add_argument("-n", "--no-cache", action="store_true", help="neither read nor write the cache")
    group.add_argument("--cache-dir", metavar="FOLDER", help="the folder of the cache")
    group.add_argument("-j", "--jobs", type=positive, default=os.cpu_count() or 1, metavar="N", help="processes to use")


def _add_configuration(group: argparse._ArgumentGroup) -> None:
    add_settings(group)
    group.add_argument("--show-settings", action="store_true", help="show the settings of the first file")
    group.add_argument("--executor", choices=("dask",), help="have a cluster do the work, which runs what it is sent: trust it")
    group.add_argument("--scheduler", metavar="ADDRESS", help="the cluster's scheduler, such as tcp://host:8786")


def _comma_list(text: str) -> list[str]:
    return [word for word in (word.strip() for word in text.split(",")) if word]


def positive(text: str) -> int:
    """A number that is 1 at least."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no positive number")
    return int(text)


def _per_file_ignores(pairs: list[str]) -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for pair in pairs:
        pattern, colon, rule = pair.rpartition(":")
        if not colon:
            raise ConfigError(f"--per-file-ignores: expected PATTERN:RULE, not '{pair}'")
        table.setdefault(pattern, []).append(rule)
    return table
