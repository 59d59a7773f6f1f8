"""``streamlint models``: the rows that say what calls do, shipped and of your own."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Any

from streamlint.commands.parser import Parser
from streamlint.commands.unused import place_of, unmatched
from streamlint.config.settings import Resolver, Settings, load
from streamlint.models.listing import LANGUAGE_NAMES, Entry, find, in_words, meaning_of, of_user, shipped
from streamlint.report.terminal import Paint, line, wants_color
from streamlint.runner import linter
from streamlint.support.errors import ConfigError, PathError, did_you_mean
from streamlint.support.paths import display_path

EXAMPLES = (
    ("streamlint models", "all rows, by file"),
    ("streamlint models --own", "those of the configuration"),
    ("streamlint models torch.Tensor.copy_", "one row, in words"),
    ("streamlint models 'torch.cuda.*'", "the rows of some names"),
    ("streamlint models check", "is the configuration right"),
    ("streamlint models --unused src", "rows of yours that match nothing in a folder"),
)
TITLES = {
    "call": "calls",
    "attribute": "attributes",
    "type": "types",
    "constant": "constants",
    "step": "methods of training steps",
    "round": "calls of rounds",
    "trait": "traits",
}
MOST_NAMES = 3  # of a row, in a list


def build_parser() -> Parser:
    """The parser of ``models``."""
    parser = Parser("models", "List and explain the rows that say what library calls do.", EXAMPLES)
    parser.add_argument("words", nargs="*", metavar="NAME|check|PATH", help="names to explain; patterns to list; check [PATH]")
    parser.add_argument("--unused", action="store_true", help="the rows of yours that match nothing in PATH (default: .)")
    parser.add_argument("--own", action="store_true", help="only the rows of your configuration")
    parser.add_argument("--config", type=Path, metavar="FILE", help="a configuration file instead of the nearest one")
    parser.add_argument("--isolated", action="store_true", help="read no configuration")
    parser.add_argument("--output-format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="when to colour (default: auto)")
    return parser


def main(words: list[str]) -> int:
    """Print rows; 0, or 2 where a name is unknown or the configuration is wrong."""
    options = build_parser().read(words)
    if options.isolated and options.config:
        raise ConfigError("--isolated ignores configuration files, --config names one")
    resolver = Resolver(Settings() if options.isolated else load(options.config.absolute()) if options.config else None)
    if options.unused:
        return _unused(options)
    if options.words[:1] == ["check"]:
        return _check(options.words[1:], resolver)
    rows = resolver.of_folder(Path.cwd()).models
    own = of_user(rows, place_of)
    entries = own if options.own else [*shipped(), *own]
    patterns = [word for word in options.words if "*" in word]
    if not options.words or patterns:
        if len(patterns) < len(options.words):
            raise ConfigError("names are explained and patterns listed: give one or the other")
        return _list(options, _covered(entries, patterns))
    return _explain(options, {word: find(word, entries, rows) for word in options.words}, entries)


def _check(paths: Sequence[str], resolver: Resolver) -> int:
    """The configuration of each path is read, and wrong rows end the run."""
    for path in paths or (".",):
        if not os.path.exists(path):
            raise PathError(f"no such file or folder: {path}")
        whole = Path(os.path.abspath(path))
        settings = resolver.of_folder(whole if whole.is_dir() else whole.parent)
        own = of_user(settings.models, lambda source, kind, number: (source, None))
        where = display_path(str(settings.source)) if settings.source else "no configuration file"
        print(line(f"{where}: {len(own)} row{'s' * (len(own) != 1)} of your own{', no error' * bool(own)}"))
    return 0


def _unused(options: argparse.Namespace) -> int:
    """Lints with all rules, and lists the rows that matched nothing; 1 if there are some."""
    fixed = Settings() if options.isolated else load(options.config.absolute()) if options.config else None
    paths = options.words or ["."]
    resolver = Resolver(fixed, [("--unused", {"select": ["ALL"], "ignore": [], "per-file-ignores": {}})])
    report = linter.run(paths, resolver, linter.How(jobs=os.cpu_count() or 1))
    if report.files == 0:
        raise PathError(f"no lintable file in {', '.join(paths)}")
    found = unmatched(report)
    if options.output_format == "json":
        print(json.dumps([as_data(entry) for entry in found], indent=2, ensure_ascii=False))
    else:
        for entry in found:
            print(line(f"{entry.place}: {entry.kind} {_some(entry.names)}"))
    sys.stdout.flush()
    total = len(of_user(report.models, lambda source, kind, number: (source, None)))
    files = f"{report.files} file{'s' * (report.files != 1)}"
    print(f"{len(found)} of {total} row{'s' * (total != 1)} of your own match nothing in {files}", file=sys.stderr)
    return 1 if found else 0


def _covered(entries: Iterable[Entry], patterns: Sequence[str]) -> list[Entry]:
    wanted = [pattern.replace("[", "[[]") for pattern in patterns]
    found = [entry for entry in entries if not wanted or any(fnmatchcase(name, one) for name in entry.names for one in wanted)]
    if wanted and not found:
        raise ConfigError(f"no row has a name like {', '.join(map(repr, patterns))}")
    return found


# Lists ------------------------------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace, entries: Sequence[Entry]) -> int:
    if options.output_format == "json":
        print(json.dumps([as_data(entry) for entry in entries], indent=2, ensure_ascii=False))
        return 0
    paint = Paint(wants_color(options.color, sys.stdout))
    for file, of_file in groupby(entries, key=lambda entry: entry.file):
        inside = list(of_file)
        heads = dict.fromkeys(f"{entry.library or 'no library'}, {LANGUAGE_NAMES[entry.language]}" for entry in inside)
        print(paint(line(f"{file} ({'; '.join(heads)})"), "strong"))
        for kind, of_kind in groupby(inside, key=lambda entry: entry.kind):
            print(f"  {TITLES[kind]}")
            rows = list(of_kind)
            room = max(len(entry.effect) for entry in rows)
            for entry in rows:
                print(line(f"    {entry.effect:<{room}}{'  ' * bool(room)}{_some(entry.names)}"))
    count = len(entries)
    own = sum(entry.own for entry in entries)
    sys.stdout.flush()
    print(f"{count} row{'s' * (count != 1)}, {own} of your own", file=sys.stderr)
    return 0


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def as_data(entry: Entry) -> dict[str, Any]:
    """A row for a program."""
    return {
        "kind": entry.kind,
        "names": list(entry.names),
        "effect": entry.table.get("effect"),
        "meaning": meaning_of(entry),
        "library": entry.library or None,
        "language": entry.language or None,
        "file": entry.file,
        "line": entry.line,
        "own": entry.own,
        "keys": [{"name": key.name, "value": value, "meaning": key.meaning, "here": in_words(key, value)} for key, value in entry.fields()],
    }


# One row ----------------------------------------------------------------------------------------------------------------------


def _explain(options: argparse.Namespace, found: Mapping[str, Sequence[tuple[Entry, str]]], entries: Sequence[Entry]) -> int:
    for word, rows in found.items():
        if not rows:
            names = {name for entry in entries for name in entry.names}
            raise ConfigError(f"no row is about '{word}'{did_you_mean(word, names)}")
    if options.output_format == "json":
        print(json.dumps([as_data(entry) for rows in found.values() for entry, _ in rows], indent=2, ensure_ascii=False))
        return 0
    paint = Paint(wants_color(options.color, sys.stdout))
    columns = min(shutil.get_terminal_size((80, 24)).columns, 120) if sys.stdout.isatty() else 0
    pages = [_page(word, entry, _why(why, entry, rows), paint, columns) for word, rows in found.items() for entry, why in rows]
    print("\n\n".join(pages))
    return 0


def _why(why: str, entry: Entry, rows: Sequence[tuple[Entry, str]]) -> str:
    """The reason why a row counts, or why another one of its kind does instead."""
    first = next(
        other for other, _ in rows if (other.kind, other.language or entry.language) == (entry.kind, entry.language or other.language)
    )
    return why if first is entry else f"not used: the row of {first.place} has the same name and wins"


def _page(word: str, entry: Entry, why: str, paint: Paint, columns: int) -> str:
    library = f"library {entry.library}" if entry.library else "no library: the call uses the current stream of none of the known ones"
    whose = "row of your own" if entry.own else "row"
    lines = [
        paint(line(word), "strong"),
        f"  {entry.kind} {whose}, {library}, {LANGUAGE_NAMES[entry.language]}",
        f"  {entry.place}",
    ]
    lines += [f"  {why}"] if why else []
    if meaning := meaning_of(entry):
        lines += [f"  {entry.effect}: {meaning}" if entry.kind not in ("step", "round", "trait") else f"  {meaning}"]
    for key, value in entry.fields():
        if key.name == "effect":
            continue
        lines += ["", f"  {paint(key.name, 'label')} = {json.dumps(value, ensure_ascii=False, default=str)}", f"      {key.meaning}"]
        said = in_words(key, value)
        lines += [f"      Here: {said}"] if said != value else []
    others = [name for name in entry.names if name != word]
    lines += ["", f"  The row has {len(others)} other name{'s' * (len(others) != 1)}: {_some(others)}"] if others else []
    return (
        "\n".join(_fitted(line(text), columns) for text in lines) if not paint.on else "\n".join(_fitted(text, columns) for text in lines)
    )


def _fitted(text: str, columns: int) -> str:
    """A line, folded behind its indentation where the terminal is narrower."""
    if not columns or len(text) <= columns:
        return text
    lead = " " * (len(text) - len(text.lstrip()))
    return textwrap.fill(text.strip(), columns, initial_indent=lead, subsequent_indent=lead, break_long_words=False, break_on_hyphens=False)
