"""The linting side of the server, without an editor: the same findings as a run, and places in the client's units."""

from __future__ import annotations

import gc
import itertools
import json
import os
import shutil
from pathlib import Path

import pytest

from streamlint.config.settings import Resolver, Settings
from streamlint.findings import Span
from streamlint.ir import ModuleIR
from streamlint.runner import linter
from streamlint.server import hover
from streamlint.server.jobs import FixAll, Lint, Repairs, Setup, Text, Touched
from streamlint.server.memory import tidy
from streamlint.server.near import Entry, Map
from streamlint.server.positions import Lines, changes
from streamlint.server.worker import Overtaken, Worker
from streamlint.support.memory import thaw
from streamlint.support.reading import language_of

EXAMPLES = Path(__file__).parents[2] / "examples"
HAZARD = "import torch\n\n\ndef read(x):\n    host = x.cuda().to('cpu', non_blocking=True)\n    return host.numpy()\n"


@pytest.fixture(autouse=True)
def thawed():
    """A worker keeps what it has lowered out of the collector's sight; other tests want to see all."""
    yield
    thaw()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The worker changes the current folder; the test's own comes back."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def worker(*folders, breathe=lambda: None, **more):
    made = Worker(breathe)
    made.do(Setup(tuple(map(str, folders)), **more))
    return made


def opened(made, path, text=None):
    made.do(Text(str(path), path.read_text(encoding="utf-8") if text is None else text, ""))
    return made.do(Lint(str(path)))


def places(rows):
    return [(row.code, row.range[0] + 1, row.range[1] + 1) for row in rows]


def test_examples_get_the_findings_of_a_run(here):
    shutil.copytree(EXAMPLES, here, dirs_exist_ok=True)
    report = linter.run(["."], Resolver())
    assert len(report.findings) > 20
    files = sorted(path for path in here.rglob("*") if language_of(path.name))
    made, shown = worker(here), {}
    for path in files:
        shown.update(opened(made, path).shown)
    for path in files:
        wanted = [f for f in report.findings if f.span.file == path.relative_to(here).as_posix()]
        assert places(shown[str(path)]) == [(f.code, f.span.row, f.span.column) for f in wanted]
        assert [row.fingerprint for row in shown[str(path)]] == [f.fingerprint for f in wanted]


def test_the_same_text_is_not_looked_at_again(here, monkeypatch):
    made = worker(here)
    path = here / "a.py"
    first = opened(made, path, HAZARD)
    monkeypatch.setattr("streamlint.server.memory.Memory.look", None)
    assert opened(made, path, HAZARD) == first
    monkeypatch.undo()


def test_other_files_are_lowered_once(here, monkeypatch):
    from streamlint.runner import parsing

    (here / "loaders.py").write_text("import torch\n\n\ndef make(n):\n    return torch.empty(n)\n")
    lowered = []
    real = parsing.parsed
    monkeypatch.setattr(parsing, "parsed", lambda source, headers: lowered.append(source.path) or real(source, headers))
    made = worker(here)
    text = 'import torch\nfrom loaders import make\n\n\ndef run(n=1 << 20):\n    return make(n).to("cuda", non_blocking=True)\n'
    assert [row.code for row in opened(made, here / "a.py", text).shown[str(here / "a.py")]] == ["SL001"]
    opened(made, here / "a.py", text + "x = 1\n")
    assert lowered == ["loaders.py", "a.py", "a.py"]
    made.do(Touched((str(here / "streamlint.toml"),), settings=True))
    opened(made, here / "a.py", text + "x = 1\n")
    assert lowered == ["loaders.py", "a.py", "a.py"]


def test_work_is_broken_off_where_the_text_changes(here):
    """Before something is asked of the program; what was known stays, and the next job is done."""
    calls = itertools.count()

    def breathe():
        if next(calls) == 1:
            raise Overtaken

    made = worker(here, breathe=breathe)
    with pytest.raises(Overtaken):
        opened(made, here / "a.py", HAZARD)
    assert places(opened(made, here / "a.py", HAZARD).shown[str(here / "a.py")]) == [("SL005", 6, 17)]


def test_repairs_leave_the_document_as_it_is(here):
    made = worker(here)
    name = str(here / "a.py")
    (row,) = opened(made, here / "a.py", HAZARD).shown[name]
    whole = made.do(FixAll(name))
    assert (whole.kind, whole.title) == ("safe", "fix 1 finding that streamlint can fix safely")
    assert whole.edits == (((5, 0, 5, 0), "    torch.cuda.current_stream().synchronize()\n"),)
    assert [repair.kind for repair in made.do(Repairs(name, (row.fingerprint,)))[0]] == ["safe", "ignore"]
    assert made.do(Repairs(name, ("gone",))) == [[]]
    assert made.do(Lint(name)).shown[name] == (row,)
    made.do(Text(name, None))
    assert made.do(FixAll(name)) is None


def test_an_encoding_that_is_declared_moves_no_place(here):
    text = "# coding: latin-1\n" + HAZARD.replace("return host", "return 'é', host")
    made = worker(here, encoding="utf-8")
    assert places(opened(made, here / "a.py", text).shown[str(here / "a.py")]) == [("SL005", 7, 17 + 6)]


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 6), ("utf-16", 4), ("utf-32", 3)])
def test_places_are_counted_in_the_clients_units(encoding, column):
    lines = Lines("a\n\x0cé𝄞b\u2028c\r\nd", encoding)
    assert lines.range(Span("", 2, 4, 2, 5))[:2] == (1, {"utf-8": 7, "utf-16": 4, "utf-32": 3}[encoding])
    assert lines.column(1, lines.range(Span("", 2, 4, 2, 5))[1]) == 3
    assert lines.range(Span("", 3, 1, 3, 2)) == (2, 0, 2, 1)
    assert lines.range(Span("", 9, 1, 9, 1))[:2] == (2, 1)
    assert column


@pytest.mark.parametrize(
    ("before", "after"),
    [("a\nb\n", "a\nc\nb\n"), ("a\r\nb", "a\r\nb  # x"), ("", "x\n"), ("a", ""), ("a\nb", "a\nb\n"), ("a\rb\n\nc", "b\nc"), ("𝄞", "𝄞\n")],
)
def test_changes_lead_from_one_text_to_the_other(before, after):
    starts = [0]
    for at, letter in enumerate(before):
        if letter == "\n" or (letter == "\r" and before[at + 1 : at + 2] != "\n"):
            starts.append(at + 1)
    text = before
    for (line, character, end_line, end_character), new in reversed(changes(before, after, "utf-32")):
        text = text[: starts[line] + character] + new + text[starts[end_line] + end_character :]
    assert text == after


def entries(**texts):
    from streamlint.discovery.files import Found

    names = {
        name.replace("__", "/").replace("_py", ".py").replace("_cuh", ".cuh").replace("_cu", ".cu"): text for name, text in texts.items()
    }
    return {name: Entry(Found(name, language_of(name) or "python", Settings(), given=False), text.encode()) for name, text in names.items()}


def test_what_a_file_can_see():
    files = entries(
        a_py="from pkg.sub import thing\nimport ext\n",
        pkg__sub_py="from . import other\n",
        pkg__other_py="",
        pkg__unseen_py="",
        csrc__bind_cu="PYBIND11_MODULE(ext, m) {}\n",
        csrc__kernel_cu='#include "kernel.cuh"\n',
        csrc__kernel_cuh="",
    )
    near = Map(files).near("a.py")
    assert [entry.found.path for entry in near] == [
        *("a.py", "pkg/sub.py", "csrc/bind.cu", "pkg/other.py", "csrc/kernel.cu", "csrc/kernel.cuh"),
    ]


@pytest.mark.parametrize(
    ("line", "column", "code"),
    [
        ("x()  # streamlint: ignore[SL001, SL005] why", 31, "SL001"),
        ("x()  # streamlint: ignore[SL001, SL005] why", 36, "SL005"),
        ("x()  # streamlint: ignore[SL001, SL005] why", 8, None),
        ("// streamlint: ignore[unpinned-non-blocking]", 5, "SL001"),
        ("x()  # noqa: SL005", 15, "SL005"),
        ("streamlint: ignore[SL001]", 20, None),
        ("x()  # streamlint: ignore[SL999]", 28, None),
    ],
)
def test_the_rule_that_a_comment_names(line, column, code):
    found = hover.code_at(line, column)
    assert (found and found[0]) == code


TYPED = """\
import torch


class Loader:
    def __init__(self, n=1 << 20):
        self.scale = 2
        self.host = torch.empty(n)

    def load(self):
        return self.host.to("cuda", non_blocking=True)

    def size(self):
        count = self.scale
        return count


def make(n):
    kind = 1
    return torch.empty(n)


def send(n=1 << 20):
    return make(n).to("cuda", non_blocking=True)


def read(x):
    host = x.cuda().to("cpu", non_blocking=True)
    return host.numpy()
"""


@pytest.mark.parametrize(
    ("before", "after", "stays"),
    [
        ("count = self.scale", "count = self.scale\n        count += 1", True),
        ("    return torch.empty(n)\n", "    return torch.empty(n)\n\n\nscale = 1\n", True),
        ("return torch.empty(n)\n", "return torch.empty(n, pin_memory=True)\n", False),
    ],
    ids=["a method", "the module", "memory"],
)
def test_a_quick_look_moves_what_was_found(before, after, stays, monkeypatch):
    """While typing in a large program; a look at the whole of it follows."""
    from streamlint.config.options import Source
    from streamlint.server import memory as remembering
    from streamlint.server.memory import Memory

    monkeypatch.setattr(remembering, "SOON", 0)
    memory, options = Memory(lambda: None), Settings().options()
    first = memory.look("a.py", [Source("a.py", TYPED, "python")], options)
    text = TYPED.replace(before, after, 1)
    quick = memory.look("a.py", [Source("a.py", text, "python")], options, first)
    assert quick.partial
    assert len(quick.findings) == len(first.findings) == 3
    whole = memory.look("a.py", [Source("a.py", text, "python")], options)
    assert not whole.partial
    assert (quick.findings == whole.findings) is stays


def test_a_quick_look_is_followed_by_a_whole_one(here, monkeypatch):
    monkeypatch.setattr("streamlint.server.memory.SOON", 0)
    made = worker(here)
    name = str(here / "a.py")
    opened(made, here / "a.py", TYPED)
    made.do(Text(name, TYPED.replace("kind = 1", "kind = 22"), ""))
    quick = made.do(Lint(name, whole=False))
    whole = made.do(Lint(name))
    assert (quick.partial, whole.partial) == (True, False)
    assert quick.shown == whole.shown


def test_former_texts_are_let_go(here):
    """What is remembered of functions would keep each text that was ever typed."""
    made = worker(here)
    for number in range(4):
        opened(made, here / "let_go.py", TYPED + "\n" * number)
    tidy()
    thaw()
    assert sum(isinstance(thing, ModuleIR) and thing.path == "let_go.py" for thing in gc.get_objects()) == 1


# What a recorded run says ---------------------------------------------------------------------------------------------------------


def test_a_recorded_run_is_told_beside_the_finding(here):
    """It is read when it is there, anew when it was written anew, and left alone when it is damaged."""
    path, kept = here / "a.py", here / ".streamlint" / "trace.json"
    path.write_text(HAZARD)
    made = worker(here)
    (row,) = opened(made, path).shown[str(path)]
    assert "cost:" not in row.message
    (finding,) = linter.run(["a.py"], Resolver()).findings
    kept.parent.mkdir()
    for number, text in enumerate(("3 ms idle", "9 ms idle")):
        known = {"standing": "COSTS", "note": "", "cost": {"summary": text, "cost_ns": 3}}
        kept.write_text(json.dumps({"findings": [{"fingerprint": finding.fingerprint, "run": known}], "stalls": []}))
        os.utime(kept, (number + 1, number + 1))
        (row,) = made.do(Lint(str(path))).shown[str(path)]
        assert row.message.startswith(f"{finding.message}\ncost: {text}\nhelp: ")
    kept.write_text("{")
    (row,) = made.do(Lint(str(path))).shown[str(path)]
    assert "cost:" not in row.message
