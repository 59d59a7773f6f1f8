"""Whether a rule gives alone what it gives among all: over packages, for each rule and for those that are on by default.

    python benchmarks/alone.py PATH…                      one process; a line for each package, and one for each finding that differs
    python benchmarks/alone.py --rules SL005 SL020 PATH…  these alone
    python benchmarks/alone.py --hidden-sync all-loops --evidence possible PATH…

Each path is read once, as ``streamlint check PATH`` would read it. A finding is compared with its message, its trail and its facts, as a
file gives it: before precedence between rules, which is about what is told of findings that stand beside one another.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from streamlint import engine
from streamlint.analysis import Analysis
from streamlint.checks.base import registry
from streamlint.config import Resolver, Settings
from streamlint.files import discover
from streamlint.findings import Finding, Problem, Report
from streamlint.interpreter.index import Program
from streamlint.linter import sources_of
from streamlint.options import Options, Source
from streamlint.program import Module
from streamlint.reading import read_bytes
from streamlint.record import replace

DEFAULT = "by default"


def found(sources: Sequence[Source], modules: Sequence[Module | Problem], options: Options) -> dict[str, Finding]:
    """What each file of a program gives, by all that is told of it."""
    program = Program()
    for source, module in zip(sources, modules, strict=True):
        engine.add(module, source, options, program, Report())
    analysis = Analysis(program, options)
    return {repr(finding): finding for name in list(program.files) for finding in analysis.check(name).findings}


def differing(sources: Sequence[Source], options: Options, selections: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, str, Finding]]:
    """Selection, ``lost`` or ``added``, and the finding that a selection has not or only has, beside all rules."""
    headers = engine.headers_of(sources)
    modules = [engine.lowered(source, headers) for source in sources]
    every = found(sources, modules, replace(options, codes=frozenset(registry())))
    for name, codes in selections.items():
        mine = found(sources, modules, replace(options, codes=codes))
        wanted = {told: finding for told, finding in every.items() if finding.code in codes}
        yield from ((name, "lost", finding) for told, finding in wanted.items() if told not in mine)
        yield from ((name, "added", finding) for told, finding in mine.items() if told not in wanted)


def packages(paths: Sequence[str], settings: Settings) -> Iterator[tuple[str, Sequence[Source], Options]]:
    """Each path with the sources that a run of it would analyse."""
    for path in paths:
        files = discover([path], Resolver(settings)).files
        for options, sources in sources_of((file, read_bytes(file.path)) for file in files).items():
            yield path, sources, options


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--rules", nargs="*", default=sorted(registry()))
    parser.add_argument("--hidden-sync", default="hot-loops")
    parser.add_argument("--evidence", default="shown")
    given = parser.parse_args(arguments)
    selections = {DEFAULT: Settings().codes & frozenset(registry()), **{code: frozenset((code,)) for code in given.rules}}
    settings = Settings.of(hidden_sync=given.hidden_sync, evidence=given.evidence)
    differ = 0
    for path, sources, options in packages(given.paths, settings):
        start, mine = time.process_time(), 0
        for name, word, finding in differing(sources, options, selections):
            mine += 1
            print(f"  {name}: {word} {finding.code} {finding.span.file}:{finding.span.row} {finding.message}", flush=True)
        print(f"{path}: {len(sources)} files, {mine} differ, {time.process_time() - start:.0f} s", flush=True)
        differ += mine
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
