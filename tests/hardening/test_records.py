"""Records of the cache that fit their hash, and that somebody else has written: a folder may be shared, or come with a repository."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pickle
import random
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hardening.inputs import MISUSE

from streamlint import cli, program
from streamlint.cache import trees
from streamlint.cache.store import _mark

APP = {
    "a.py": MISUSE,
    "b.py": MISUSE.replace("run", "other").replace("import torch", "import torch\nimport lib\nfrom app import a\n"),
    "k.h": "void go(float*, float*, cudaStream_t);\n",
    "k.cu": '#include "k.h"\n'
    "void go(float* d, float* h, cudaStream_t s) { cudaMemcpyAsync(h, d, 4, cudaMemcpyDeviceToHost, s); h[0] = 1; }\n",
    "lib.cpp": '#include <pybind11/pybind11.h>\n#include "k.h"\nvoid wait() { cudaDeviceSynchronize(); }\n'
    'PYBIND11_MODULE(lib, m) { m.def("wait", &wait); }\n',
    "setup.py": "from torch.utils.cpp_extension import CUDAExtension\nCUDAExtension('lib', ['lib.cpp', 'k.cu'])\n",
}
WORDS = ["check", "--isolated", "--cache-dir", "kept", "--select", "ALL", "--jobs", "1"]
ODD: list[Any] = [None, 1, -1, "x", [], {}, True, 10**30, 1.5, [[[]]], {"a": 1}, "\u2028\ud800", ...]  # the last: it is gone
ODD_PARTS: list[Any] = [None, 1, -1, "x", [], {}, True, 10**30, 1.5, (), ((1, 2, 3, 4),), 1j]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, and what a run over it has kept."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "app").mkdir()
    for name, text in APP.items():
        (folder / "app" / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("STREAMLINT_NO_CACHE", "")
        assert cli.main([*WORDS, "-q", "-o", "told.json", "--output-format", "json", "app"]) == 1
    (folder / "kept").rename(folder / "whole")
    return folder


@pytest.fixture
def folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder: what is kept of a run is kept for the folder that it was made in."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("STREAMLINT_NO_CACHE", "")
    yield project
    for name, text in APP.items():
        if (project / "app" / name).read_text() != text:
            (project / "app" / name).write_text(text)


def records(folder: Path, *kinds: str) -> list[Path]:
    """The records of some kinds, from the folder on."""
    found = (path for kind in kinds for path in (folder / "whole").glob(f"v*/{kind}/*") if re.fullmatch("[0-9a-f]{32}", path.name))
    return [path.relative_to(folder / "whole") for path in sorted(found)]


def put(folder: Path, record: Path, body: bytes, without: tuple[str, ...]) -> None:
    """A fresh copy of what was kept, with another record, and without those that would spare it."""
    shutil.rmtree(folder / "kept", ignore_errors=True)
    shutil.copytree(folder / "whole", folder / "kept")
    for path in records(folder, *without):
        (folder / "kept" / path).unlink()
    (folder / "kept" / record).write_bytes(_mark(body) + b"\n" + body)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main([*WORDS, *words, "app"])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    return code, told.out, told.err


def _places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in rows:
        yield from _places(inner, (*path, key))


def _changed(value: Any, path: tuple[Any, ...], odd: object) -> object:
    if not path:
        return None if odd is ... else odd
    made = at = json.loads(json.dumps(value))
    for key in path[:-1]:
        at = at[key]
    if odd is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = odd
    return made


@pytest.mark.parametrize("kind", ["runs", "units", "interfaces", "paths"])
def test_records_of_another_form(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each value in turn is something else; a sample, the same each time. Findings may be hidden; there is no fault."""
    held = {path: json.loads((folder / "whole" / path).read_bytes().partition(b"\n")[2]) for path in records(folder, kind)}
    changes = [(path, place, odd) for path, value in held.items() for place, odd in itertools.product(_places(value), ODD)]
    assert len(changes) > 50
    for number, (path, place, odd) in enumerate(random.Random(1).sample(changes, min(len(changes), 40))):
        body = json.dumps(_changed(held[path], place, odd)).encode()
        put(folder, path, body, () if kind == "runs" else ("runs",))
        code, out, errors = run(capsys, "--output-format", ("json", "sarif", "full")[number % 3])
        assert (code in (0, 1), "internal error" in errors) == (True, False), (path, place, odd, errors)
        assert "\u2028" not in out


def _parts(value: object, seen: set[int]) -> Iterator[tuple[Any, Any]]:
    """The attributes and elements of a tree that can be given another value."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (list, dict)):
        rows: list[tuple[Any, Any]] = list(value.items() if isinstance(value, dict) else enumerate(value))
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        held = [f"_{name}" if hasattr(value, f"_{name}") else name for name in names]  # as a pickle has it: some fields are packed
        rows = [(name, getattr(value, name)) for name in held]
    else:
        rows = [(None, inner) for inner in value] if isinstance(value, tuple) else []
    for key, inner in rows:
        if key is not None:
            yield value, key
        yield from _parts(inner, seen)


def test_trees_of_another_form(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tree costs its own findings, with a message, or nothing that is kept is used."""
    chance, out = random.Random(2), set()
    for _ in range(60):
        path = chance.choice(records(folder, "trees"))
        made = pickle.loads(zlib.decompress((folder / "whole" / path).read_bytes().partition(b"\n")[2]))
        at, key = chance.choice(list(_parts(made, set())))
        odd = chance.choice([*ODD_PARTS, made])
        if isinstance(at, (list, dict)):
            at[key] = odd
        else:
            object.__setattr__(at, key, odd)
        try:
            body = zlib.compress(pickle.dumps(made, 5))
        except (RecursionError, TypeError):
            continue
        put(folder, path, body, ("runs", "units", "interfaces"))
        code, told, errors = run(capsys, "--output-format", "json")
        assert code in (0, 1), errors
        assert "internal error, nothing" not in errors
        out.add("is no work of ours" in errors)
        json.loads(told)
    assert out == {True, False}


# What a pickle can do with the classes that it may name: change them; and what it can do without any: ask for memory, nest.
_GIVE = b"\x80\x04cstreamlint.program\n%s\nN}\x8c\x04textK\x05s\x86b."
PICKLES = {
    "changes a class": _GIVE % b"Module",
    "adds to a class": (_GIVE % b"Name").replace(b"\x8c\x04text", b"\x8c\x08__bool__"),
    "changes a class and is a tree": (_GIVE % b"Module")[:-1] + b"0" + pickle.dumps(program.Module("app/a.py", "python", (), ""), 4)[2:],
    "a large memo": b"\x80\x04Nr\xff\xff\xff\x7f.",
    "a long text": b"\x80\x04\x8d" + b"\xff" * 7 + b"\x7f.",
    "a long number": b"\x80\x04\x8b\xff\xff\xff\x7f.",
    "a frame": b"\x80\x04\x95" + b"\xff" * 7 + b"\x7f.",
    "nested": b"\x80\x04" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "a loop": b"\x80\x04]\x94h\x00a.",
    "a function": b"\x80\x04cos\nsystem\n\x8c\x0ctouch markerX\x85R.",
    "a function by its path": b"\x80\x04\x8c\x12streamlint.program\x8c\x0fos.path.exists\x93.",
    "an attribute of what is known": b"\x80\x04\x8c\x12streamlint.program\x8c\x12Module.__init__.__globals__\x93.",
    "a copy": b"\x80\x04ccopyreg\n_reconstructor\n.",
    "an extension": b"\x80\x04\x82\x01.",
    "somebody's own": b"\x80\x04K\x01Q.",
    "nothing": b"\x80\x04.",
    "much of nothing": b"\0" * (1 << 24),
}


@pytest.mark.parametrize("what", PICKLES)
def test_pickles_that_are_no_trees(what: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MOST_BYTES", 1 << 20)  # of what is unpacked; else as dear as it is large
    before = [dict(vars(each)) for each in trees._CLASSES]
    for path in records(folder, "trees"):
        put(folder, path, zlib.compress(PICKLES[what]), ("runs", "units", "interfaces"))
        _, told, errors = run(capsys, "--output-format", "json")
        assert told == (folder / "told.json").read_text(), errors
        assert [dict(vars(each)) for each in trees._CLASSES] == before
    assert not list(folder.glob("marker*"))


def test_a_record_shows_no_foreign_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What lies outside of the run is not read for a place that a record names."""
    (folder / "secret").write_text("the secret\n" * 9)
    for kind in ("runs", "units"):
        told = 0
        for path in records(folder, kind):
            text = (folder / "whole" / path).read_bytes().partition(b"\n")[2].decode()
            for name in APP:
                body = text.replace(f'["app/{name}",', f'["{folder / "secret"}",')
                told += body != text
                put(folder, path, body.encode(), () if kind == "runs" else ("runs",))
                assert "the secret" not in "".join(map(str, run(capsys, "--output-format", "full")))
        assert told


def test_a_record_changes_no_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fixes that are kept are shown; those that are applied were tried in this run."""
    (path,) = records(folder, "runs")
    record = json.loads((folder / "whole" / path).read_bytes().partition(b"\n")[2])
    fixes = {key: fix for key, fix in record["fixes"].items() if fix}
    assert fixes
    for fix in fixes.values():
        fix[1] = [["import os; os.system('touch markerX')\n", ["app/a.py", 1, 1, 1, 1]]]
    put(folder, path, json.dumps(record).encode(), ())
    assert "marker" in run(capsys, "--output-format", "json")[1]
    for words in (["--diff"], ["--fix", "--unsafe-fixes"]):
        assert "marker" not in "".join(map(str, run(capsys, *words)))
    assert all("marker" not in file.read_text() for file in (folder / "app").iterdir())
