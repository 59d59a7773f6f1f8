"""What is kept is never wrong: after each kind of edit a run with the cache tells what one without it tells."""

from __future__ import annotations

import json
import os
import random
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cache.conftest import OVERRIDES, report
from cache.projects import EDITS, PROJECT, write

from streamlint.cache import open_store, runs
from streamlint.cache.store import Store
from streamlint.config.settings import Resolver
from streamlint.findings import Report
from streamlint.runner import linter
from streamlint.runner.relint import Relint

Check = Callable[..., tuple[int, str]]


def undone(what: str) -> dict[str, str | None]:
    return {name: PROJECT.get(name) for name in EDITS[what]}


def test_a_second_run_analyses_nothing(cache: Path, checked: list[str]) -> None:
    first = report(cache)
    assert checked == []
    assert sorted({finding.code for finding in first.findings}) == ["SL001", "SL003", "SL005", "SL007", "SL009", "SL012", "SL016"]
    assert report(None) == first


@pytest.mark.parametrize("what", EDITS)
def test_warm_is_cold(cache: Path, what: str) -> None:
    before = report(cache)
    write(EDITS[what])
    warm = report(cache)
    assert warm == report(None)
    assert warm != before, "an edit that changes nothing shows nothing"
    assert report(cache) == warm
    write(undone(what))
    assert report(cache) == before


def test_edits_in_any_order(cache: Path) -> None:
    chance = random.Random(7)
    for _ in range(6):
        for what in chance.sample(sorted(EDITS), 2):
            write(EDITS[what] if chance.random() < 0.6 else undone(what))
        assert report(cache) == report(None)


def test_an_edit_costs_what_is_asked_of_its_language(cache: Path, checked: list[str]) -> None:
    report(cache)
    checked.clear()
    write(EDITS["an imported file"])
    report(cache)
    assert sorted(checked) == ["python", "python cuda cython"]
    checked.clear()
    write(EDITS["the C++ behind a binding"])
    report(cache)
    assert sorted(checked) == ["cuda", "python cuda cython"]


def test_an_edit_parses_what_it_changes(cache: Path, read: list[str]) -> None:
    report(cache)
    assert read == []
    write(EDITS["an imported file"])
    report(cache)
    assert read == ["app/loading.py"]
    read.clear()
    write(EDITS["a header"])
    warm = report(cache)
    assert read == ["csrc/kernels.cu", "csrc/memory.h"], "what includes it, too"
    assert warm == report(None)


def test_a_comment_costs_nothing(cache: Path, checked: list[str]) -> None:
    report(cache)
    write(
        {
            "app/loading.py": textwrap.dedent(PROJECT["app/loading.py"]).rstrip()
            + "  # one word more: torch.cuda.synchronize()\n# and a line\n"
        }
    )
    checked.clear()
    warm, looked_at = report(cache), list(checked)
    assert warm == report(None)
    assert looked_at == []


def test_a_change_in_the_same_tick_of_the_clock(cache: Path) -> None:
    before, path = report(cache), Path("app/loading.py")
    facts = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("PINNED = False", "PINNED = 1 == 1"), encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace("PINNED = 1 == 1", "PINNED = True "), encoding="utf-8")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert path.stat().st_size == facts.st_size
    warm = report(cache)
    assert warm != before
    assert warm == report(None)


@pytest.mark.parametrize("changed", [False, True])
def test_what_was_just_written_is_looked_at_once_more_at_the_end(cache: Path, monkeypatch: pytest.MonkeyPatch, changed: bool) -> None:
    path, later = Path("app/loading.py"), 3_000_000_000
    calls: list[int] = []

    class Clock:
        @staticmethod
        def time_ns() -> int:
            calls.append(1)
            return time.time_ns() + later * (len(calls) > 1)

    path.write_text(path.read_text(encoding="utf-8").replace("PINNED = False", "PINNED = 1 == 1"), encoding="utf-8")
    if changed:  # between the first look at it and the last one
        plain = Report.add
        text = path.read_text(encoding="utf-8").replace("1 == 1", "True ")
        monkeypatch.setattr(Report, "add", lambda *given: (path.write_text(text, encoding="utf-8"), plain(*given)))
    monkeypatch.setattr(runs, "time", Clock)
    report(cache)
    assert len(calls) > 1
    monkeypatch.undo()
    written: list[str] = []
    write = Store.write_bytes
    monkeypatch.setattr(Store, "write_bytes", lambda self, kind, *rest: (written.append(kind), write(self, kind, *rest)))
    monkeypatch.chdir(cache.parent / "project")
    assert report(cache) == report(None)
    assert ("runs" in written) is changed


def test_a_tree_with_new_dates_is_known_by_its_content(cache: Path, checked: list[str]) -> None:
    before = report(cache)
    for name in PROJECT:
        os.utime(name, (1e9, 1e9))
    assert report(cache) == before
    assert checked == []


def test_a_baseline_is_read_anew(check: Check, tmp_path: Path) -> None:
    listed = tmp_path / "known.json"
    check("csrc", "--write-baseline", str(listed))
    known = ("csrc", "--baseline", str(listed))
    assert check(*known)[0] == 0
    listed.write_text(json.dumps({**json.loads(listed.read_text()), "findings": []}))
    loud = check(*known)
    assert loud[0] == 1
    assert loud == check(*known, "--no-cache")


def test_fixes_are_kept_and_still_applied(check: Check) -> None:
    first = check("app/streams.py")
    assert '"applicability": "safe"' in first[1]
    assert check("app/streams.py") == first
    assert check("app/streams.py", "--fix", "-q") == (0, "[]\n")
    assert "synchronize" in Path("app/streams.py").read_text(encoding="utf-8")


def test_fixes_are_tried_again_only_where_something_changed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    everywhere: set[bool] = set()
    plain = Relint.findings

    def findings(self: Relint, path: str, text: str, codes: frozenset[str], is_applied: bool = True) -> object:
        tried.append(path)
        everywhere.add(is_applied)
        return plain(self, path, text, codes, is_applied)

    monkeypatch.setattr(Relint, "findings", findings)

    def fixes(store: Path | None = cache, trials: bool = False) -> list[tuple[str, object]]:
        resolver = Resolver(None, [("test", OVERRIDES)], default_excludes=False)
        tried.clear()
        found = linter.run(["app"], resolver, linter.How(fixes=True, trials=trials, store=open_store(store) if store else None))
        return [(f.span.file, f.fix) for f in found.findings]

    first = fixes()
    assert "app/streams.py" in tried
    again = fixes()
    assert tried == []
    assert again == first == fixes(None)
    assert everywhere == {False}
    # What is written into files comes from no cache, and is tried with all files.
    assert fixes(trials=True) == again
    assert everywhere == {False, True}
    assert "app/streams.py" in tried
    write({"app/streams.py": PROJECT["app/streams.py"].replace("1 << 20", "1 << 19")})
    changed = fixes()
    assert "app/streams.py" in tried
    assert changed == fixes(None)


@pytest.mark.parametrize(
    "words", [("--select", "SL003"), ("--ignore", "SL003"), ("--coverage",), ("--select", "ALL"), ("--statistics",), ("app/train.py",)]
)
def test_other_options_have_other_records(check: Check, words: tuple[str, ...]) -> None:
    check("app", "csrc")
    paths = () if words[0].endswith(".py") else ("app", "csrc")
    cold = check(*paths, *words, "--no-cache")
    assert check(*paths, *words) == cold
    assert check(*paths, *words) == cold


def test_a_run_with_a_file_that_cannot_be_read_is_kept(cache: Path, checked: list[str], read: list[str]) -> None:
    write({"app/broken.py": "import torch\n\n\ndef train(:\n    torch.cuda.synchronize()\n"})
    first = report(cache)
    assert [finding.span.file for finding in first.findings if finding.code == "SL000"] == ["app/broken.py"]
    checked.clear()
    read.clear()
    assert report(cache) == first
    assert (checked, read) == ([], [])
