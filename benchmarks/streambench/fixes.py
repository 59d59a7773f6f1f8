"""The track of real fixes: the commits of benchmarks/recall/fixes.toml, both versions read out of clones that are at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.recall.clones import clone_of, needed
from benchmarks.recall.measure import NEAR, STILL, Fix, read_fixes
from benchmarks.streambench.cases import Case


def cases(mirrors: Path) -> Iterator[Case]:
    """The fixes whose repository has a clone under the folder.

    A finding within five lines of the bug finds it; one within a line of the mended place is a false alarm. Other findings do not count.
    """
    for number, fix in enumerate(read_fixes()):
        clone = clone_of(fix.repository, mirrors)
        if clone is None:
            continue
        bad, clean = (_texts(needed(clone, revision, fix)) for revision in (f"{fix.commit}^", fix.commit))
        if fix.path in bad and fix.path in clean:
            yield _case(number, fix, bad, clean)


def _texts(files: dict[str, bytes]) -> dict[str, str]:
    return {path: text.decode("utf-8", "replace") for path, text in files.items()}


def _case(number: int, fix: Fix, bad: dict[str, str], clean: dict[str, str]) -> Case:
    marks = sorted({(fix.path, row + off) for row in fix.before for off in range(-NEAR, NEAR + 1)})
    alarms = sorted({(fix.path, row + off) for row in fix.after for off in range(-STILL, STILL + 1)})
    api = "python" if fix.path.endswith((".py", ".pyx")) else "cuda-c++"
    name = f"fix-{number:03}-{fix.repository.replace('/', '-')}"
    return Case(name, "fixes", fix.rule, api, fix.decidable, fix.why, bad, clean, tuple(marks), alarms=tuple(alarms))
