"""Lowered files come back as they were, and only where nothing that they were made of has changed."""

from __future__ import annotations

import os
import pickle
import re
import zlib
from pathlib import Path

import pytest
from documents import DOCUMENTS, read

from streamlint import engine
from streamlint.cache import open_store
from streamlint.cache.trees import TREES, Trees
from streamlint.options import Source
from streamlint.program import Const, Module, walk

PYTHON = "import torch\n\n\ndef f(x, *, y=..., z=2j):\n    '''What it does.'''\n    return x[1:, None].to('cuda', non_blocking=True)\n"
KERNEL = '#include "size.h"\nvoid g(float* to) { cudaMemcpy(to, 0, SIZE, cudaMemcpyHostToDevice); }\n'
FILES = {"a.py": PYTHON, "k.cu": KERNEL, "size.h": '#include "deep.h"\n', "deep.h": "#define SIZE 12\n", "other.h": "#define SIZE 13\n"}


def source(path: str, text: str) -> Source:
    return Source(path, text, "python" if path.endswith(".py") else "cuda")


def sources(**edits: str) -> dict[str, Source]:
    return {path: source(path, text) for path, text in {**FILES, **{path.replace("_", "."): text for path, text in edits.items()}}.items()}


def trees(folder: Path, all_of_them: dict[str, Source]) -> Trees:
    headers = engine.headers_of(all_of_them.values())
    return Trees(open_store(folder), lambda: headers)


def kept(folder: Path, run: dict[str, Source]) -> Trees:
    made = trees(folder, run)
    headers = engine.headers_of(run.values())
    for each in run.values():
        module = engine.lowered(each, headers if each.language == "cuda" else None)
        assert isinstance(module, Module)
        made.keep(each, module)
        assert module.text == each.text
    return made


def told(module: object) -> str:
    """All of a module; sets have no order."""
    return re.sub(r"frozenset\(\{(.*?)\}\)", lambda match: str(sorted(match[1].split(", "))), repr(module))


def test_what_is_kept_is_what_was_lowered(tmp_path: Path) -> None:
    run = sources()
    held = kept(tmp_path, run)
    for each in run.values():
        module = held.load(each)
        assert told(module) == told(engine.lowered(each, engine.headers_of(run.values())))
    python = held.load(run["a.py"])
    assert python is not None
    assert any(isinstance(node, Const) and node.value is ... for node in walk(python.functions["f"][0].params[1].default))


def test_documents_come_back(tmp_path: Path) -> None:
    files = [file for document in DOCUMENTS for section in list(read(document))[::12] for file in section.files]
    assert len({file.language for file in files}) > 1
    for number, file in enumerate(files):
        each = Source(f"{number}/{file.name}", file.text, file.language)
        held = trees(tmp_path, {each.path: each})
        module = engine.lowered(each, engine.headers_of([each]))
        if isinstance(module, Module):
            held.keep(each, module)
            assert told(held.load(each)) == told(module)


@pytest.mark.parametrize(
    ("edit", "lost"),
    [
        ({"a_py": PYTHON + "\n"}, {"a.py"}),
        ({"deep_h": "#define SIZE 13\n"}, {"deep.h", "size.h", "k.cu"}),
        ({"other_h": "#define SIZE 14\n"}, {"other.h"}),
        ({"size_h": '#include "deep.h"\n#include "k.cu"\n'}, {"size.h", "k.cu"}),
    ],
)
def test_what_includes_a_changed_file_is_lowered_again(tmp_path: Path, edit: dict[str, str], lost: set[str]) -> None:
    kept(tmp_path, sources())
    run = sources(**edit)
    held = trees(tmp_path, run)
    assert {path for path, each in run.items() if held.load(each) is None} == lost


def test_a_circle_of_includes_is_known_by_all_texts(tmp_path: Path) -> None:
    circle = {"size_h": '#include "deep.h"\n', "deep_h": '#include "size.h"\n#define SIZE 2\n'}
    assert kept(tmp_path, sources(**circle)).load(sources(**circle)["k.cu"]) is not None
    run = sources(**circle, other_h="")
    assert trees(tmp_path, run).load(run["k.cu"]) is None


def test_an_include_that_is_written_oddly_counts(tmp_path: Path) -> None:
    odd = {"k_cu": KERNEL.replace('#include "', '# /* */ include \\\n"')}
    kept(tmp_path, sources(**odd))
    run = sources(**odd, deep_h="#define SIZE 13\n")
    assert trees(tmp_path, run).load(run["k.cu"]) is None


class _Runs:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("made-by-a-record",)


@pytest.mark.parametrize("data", [b"", b"no zlib", *map(zlib.compress, (b"no pickle", pickle.dumps({}), pickle.dumps(_Runs())))])
def test_what_somebody_else_wrote_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    run = sources()
    held = trees(tmp_path / "cache", run)
    held._store.write_bytes(TREES, held.key(run["a.py"]), data)
    assert held.load(run["a.py"]) is None
    assert not Path("made-by-a-record").exists()


def test_what_lacked_a_parser_is_not_kept(tmp_path: Path) -> None:
    run = sources()
    module = engine.lowered(run["a.py"], None)
    assert isinstance(module, Module)
    module.problems = [((1, 1, 1, 1), "left out: no parser for C++")]
    held = trees(tmp_path, run)
    held.keep(run["a.py"], module)
    assert held.load(run["a.py"]) is None
