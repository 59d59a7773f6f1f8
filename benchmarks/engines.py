"""How many sections of the rules' documents each rule passes by itself.

    python benchmarks/engines.py                    # a table
    python benchmarks/engines.py SL005              # what is missing and what is wrong, section by section
    python benchmarks/engines.py SL005 -v pinned    # with the code, of the sections whose title holds a word
    python benchmarks/engines.py SL005 --strict     # messages, trails, sections without what orders, and other names of variables as well

A section counts for a rule if it expects it, or stands in the rule's own document. Options: ``--python``, ``--cuda``, ``--cython`` take
only the sections with such files, ``--own`` only those of the rule's own documents.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from documents import DOCUMENTS, SUFFIXES, Section, options_of, read
from rename import File, misled, rename

from streamlint.config.options import Options, Source
from streamlint.findings import Finding
from streamlint.hazards.findings import find, registry
from streamlint.runner.parsing import Parser
from streamlint.triage.precedence import best

Place = tuple[str, int]


def lint(folder: Path, files: Iterable[File], document: str, code: str) -> list[Finding]:
    """What one rule finds in the files of a section."""
    sources = []
    for file in files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
        if file.language in SUFFIXES:
            sources.append(Source(str(path), file.text, file.language))
    asked = options_of(document)
    options = Options(codes=frozenset({code}), hidden_sync=asked.hidden_sync, evidence=asked.evidence)
    parser = Parser(sources)
    told = find(parser.sources, options, parser.representation)
    if told.faults:
        raise RuntimeError(told.faults[code])
    return list(best(told.findings))


def wrong(section: Section, code: str, files: Iterable[File], marks: set[Place], folder: Path, words: bool) -> str:
    """What differs from what a section expects; empty where nothing does."""
    found = lint(folder, files, section.document, code)
    there = {(Path(one.span.file).relative_to(folder).as_posix(), one.span.row) for one in found}
    text = ""
    if there != marks:
        text = f"not found {sorted(marks - there)} unexpected {sorted(there - marks)}"
    elif words:
        for mark in section.marked("error"):
            messages = [one.message for one in found if one.span.row == mark.row]
            if mark.code == code and not any(mark.text in message for message in messages):
                text += f"line {mark.row}: {mark.text!r} is in none of {messages} "
        codes = {mark.code for mark in section.marked("error", "SPURIOUS")}
        steps = [step for one in found for step in one.trail]
        for mark in section.marked("trail") if codes == {code} else ():
            here = [one.message for one in steps if one.span.row == mark.row and Path(one.span.file).name == Path(mark.file).name]
            if not any(mark.text in message for message in here):
                text += f"line {mark.row}: no step of the trail says {mark.text!r}, only {here} "
    return text


def judge(section: Section, code: str, strict: bool) -> Iterator[str]:
    """What is wrong with a section."""
    wanted = {(mark.file, mark.row) for mark in section.marked("error", "SPURIOUS") if mark.code == code}
    with tempfile.TemporaryDirectory(prefix="project") as name:
        folder = Path(name).resolve()
        if difference := wrong(section, code, section.files, wanted, folder, strict):
            yield difference
            return
        if not strict:
            return
        if all(file.language == "python" for file in section.files):
            for title, files in (("renamed", rename(section.files)), ("misled", misled(section.files))):
                if difference := wrong(section, code, files, wanted, folder, False):
                    yield f"{title}: {difference}"
        gone = {(mark.file, mark.row) for mark in section.marked("orders")}
        if gone:
            files = [
                File(f.name, f.language, "\n".join("" if (f.name, row) in gone else line for row, line in enumerate(f.text.split("\n"), 1)))
                for f in section.files
            ]
            more = {(mark.file, mark.row) for mark in section.marked("without-orders") if mark.code == code}
            if difference := wrong(section, code, files, wanted | more, folder, False):
                yield f"without what orders: {difference}"


def main(words: list[str]) -> None:
    sys.setrecursionlimit(20_000)
    flags = {word for word in words if word.startswith("-")}
    names = [word for word in words if not word.startswith("-")]
    codes = [name for name in names if name in registry()] or sorted(registry())
    titles = [name for name in names if name not in registry()]
    languages = {flag[2:] for flag in flags} & {"python", "cuda", "cython"}
    sections = [section for document in DOCUMENTS for section in read(document)]
    print(f"{'rule':6} {'own':>10} {'all':>12}")
    for code in codes:
        passed = {True: 0, False: 0}
        counted = {True: 0, False: 0}
        for section in sections:
            is_own = section.document.upper().startswith(code)
            if ("--own" in flags and not is_own) or not all(title in section.id for title in titles):
                continue
            if languages and not languages & {file.language for file in section.files}:
                continue
            try:
                differences = list(judge(section, code, "--strict" in flags))
            except Exception:
                differences = [traceback.format_exc(limit=-5)]
            counted[is_own] += 1
            passed[is_own] += not differences
            if differences and len(codes) == 1:
                print(section.id, *differences, sep="\n    ")
                if "-v" in flags:
                    for file in section.files:
                        print(f"    --- {file.name}", *(f"    {n:4} {line}" for n, line in enumerate(file.text.split("\n"), 1)), sep="\n")
        total = f"{passed[True] + passed[False]}/{counted[True] + counted[False]}"
        print(f"{code:6} {passed[True]:4}/{counted[True]:<5} {total:>12}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
