"""``streamlint debug waits``: what SL020 and SL021 report of the files of a folder."""

from __future__ import annotations

from pathlib import Path

from streamlint.commands.debug_facts import sources
from streamlint.commands.parser import Parser
from streamlint.config.options import Options, Source
from streamlint.support.errors import PathError
from streamlint.waits.findings import find

ABOUT = "Print what SL020 and SL021 tell of Python and C++ files, decided from program facts."


def main(words: list[str]) -> int:
    """``debug waits DIR``: the findings, a line each, with the steps that lead to them."""
    parser = Parser("debug waits", ABOUT, (("streamlint debug waits src", ""),))
    parser.add_argument("folder", metavar="DIR", help="the program's folder")
    parser.add_argument("--all-loops", action="store_true", help="also loops that decode, denoise or serve, and forwards of modules")
    options = parser.read(words)
    if not Path(options.folder).is_dir():
        raise PathError(f"{options.folder}: no such folder")
    files = {one.path: one for one in sources(Path(options.folder))}
    given = [Source(one.path, one.text, one.language) for one in files.values()]
    wanted = Options(hidden_sync="all-loops" if options.all_loops else "hot-loops")
    for finding in find(given, wanted, lambda source: files[source.path].lower()).findings:
        print(f"{finding.span.file}:{finding.span.row}: {finding.code} {finding.message}")
        for step in finding.trail:
            print(f"  {step.span.file}:{step.span.row}: {step.message}")
    return 0
