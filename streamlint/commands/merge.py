"""``streamlint merge``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from streamlint.commands import fixing
from streamlint.commands.check_options import build_parser as check_parser
from streamlint.commands.parser import Parser
from streamlint.commands.reporting import tell
from streamlint.commands.running import keep_changed, resolver_of, targets_of
from streamlint.commands.shard import demand_fitting, settings_of
from streamlint.config.settings import FORMATS
from streamlint.runner import linter
from streamlint.runner.shards import Joined, read_reports
from streamlint.support import guard
from streamlint.support.errors import ConfigError

if TYPE_CHECKING:
    from typing import Any

EXAMPLES = (
    ("streamlint merge shard-*.json", "as `streamlint check` would tell it"),
    ("streamlint merge shard-*.json --output-format sarif -o out.sarif", "for code scanning"),
)


def build_parser() -> Parser:
    """The parser of ``merge``."""
    about = "Join the reports of all `streamlint check --shard` runs into one, in the folder and the tree that they ran in."
    parser = Parser("merge", about, EXAMPLES)
    parser.add_argument("files", nargs="+", metavar="FILE", help="the reports of all shards, in any order")
    parser.add_argument("--output-format", action="append", metavar="FORMAT[:FILE]", help=f"{', '.join(FORMATS)}; repeatable")
    parser.add_argument("-o", "--output-file", metavar="FILE", help="write findings there instead of to stdout")
    parser.add_argument("-e", "--exit-zero", action="store_true", help="exit 0 even when there are findings")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="when to colour (default: auto)")
    parser.add_argument("-q", "--quiet", action="store_true", help="print findings only")
    return parser


def main(words: list[str]) -> int:
    """Join, print, and exit as ``check`` would have."""
    arguments = build_parser().read(words)
    reports = read_reports(arguments.files)
    options = _options(reports[0], arguments)
    resolver = resolver_of(options)
    if settings_of(options, resolver) != reports[0]["settings"]:
        raise ConfigError(
            "the settings or the files here are not those of the shards; run `streamlint merge` in the same folder of the same tree"
        )
    targets = targets_of(options, resolver)
    for report in reports:
        guard.lost.update({str(path): str(why) for path, why in report["lost"].items()})
    fixes = fixing.worth_finding(options, [format for format, _ in targets])
    joined = linter.run(options.paths, resolver, linter.How(jobs=options.jobs, fixes=fixes, trials=False, share=Joined(reports)))
    if options.since is not None:
        keep_changed(options, joined)
    options.exit_zero = options.exit_zero or arguments.exit_zero
    return tell(options, fixing.Fixed(joined), targets, resolver)


def _options(report: dict[str, Any], arguments: argparse.Namespace) -> argparse.Namespace:
    """The command line of the shards, with the output that is asked for here."""
    options = check_parser().read(report["arguments"])
    options.paths = options.paths or ["."]
    demand_fitting(options)
    for name in ("output_format", "output_file", "color", "quiet"):
        setattr(options, name, getattr(arguments, name))
    return options
