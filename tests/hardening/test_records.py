"""Records of the cache that fit their hash, and that somebody else has written: a folder may be shared, or come with a repository."""

from __future__ import annotations

import itertools
import json
import marshal
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hardening.inputs import MISUSE

from streamlint import cli
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


@pytest.mark.parametrize("kind", ["runs", "parts"])
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


# What a lowered file may be instead: nothing that `marshal` reads, or something else.
NO_FILES = [b"", b"no record", marshal.dumps(None), marshal.dumps([]), marshal.dumps({"a": 1}), marshal.dumps(((), (), 1)), b"\0" * 4096]


@pytest.mark.parametrize("body", NO_FILES)
def test_lowered_files_that_are_none(body: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in records(folder, "ir"):
        put(folder, path, body, ("runs", "parts"))
        _, told, errors = run(capsys, "--output-format", "json")
        assert told == (folder / "told.json").read_text(), errors


def test_a_record_shows_no_foreign_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What lies outside of the run is not read for a place that a record names."""
    (folder / "secret").write_text("the secret\n" * 9)
    for kind in ("runs", "parts"):
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
