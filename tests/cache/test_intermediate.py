"""Intermediate representations are kept by content, and what is not whole is as good as absent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamlint.cache import intermediate, store
from streamlint.cache.intermediate import MADE_BY, IntermediateCache
from streamlint.cache.store import PACKAGE, Store, clean
from streamlint.frontends import cuda, python
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower
from streamlint.ir.printer import print_module

PYTHON = "import a\n\n\n@a.b\ndef f(x: int = 1, *y, z=2j) -> a.C:\n    return [x[...], b'c', lambda: x]\n"
CUDA = "using S = cudaStream_t;\nS s;\ntemplate <typename T> struct A { T x = 0; void f(T& y) { g<T>(y); } };\n"


def lowered(path: str, text: str) -> ModuleIR:
    return lower((python if path.endswith(".py") else cuda).lower(path, text))


@pytest.mark.parametrize(("path", "text"), [("a.py", PYTHON), ("a.cu", CUDA)])
def test_what_is_kept_is_what_was_lowered(tmp_path: Path, path: str, text: str) -> None:
    cache = IntermediateCache(tmp_path)
    module = lowered(path, text)
    assert cache.load(path, module.language, text.encode()) is None
    cache.keep(module, module.language, text.encode())
    again = IntermediateCache(tmp_path).load(f"other/{path}", module.language, text.encode())
    assert again is not None
    assert again.path == f"other/{path}"
    assert print_module(again) == print_module(module)
    assert again.dump() == module.dump()
    for name in ("classes", "outline", "annotations", "globals", "aliases", "includes", "problems"):
        assert getattr(again, name) == getattr(module, name)
    for one, other in zip(again.codes(), module.codes(), strict=True):
        assert all(getattr(one, name) == getattr(other, name) for name in one.__slots__)


def test_a_function_is_loaded_when_it_is_asked_for(tmp_path: Path) -> None:
    """Nor is it unpacked before."""
    module = ModuleIR.load("a.py", lowered("a.py", PYTHON).dump())
    assert module._codes == [None] * 3
    assert module.code(1).name == "f"
    assert [code is not None for code in module._codes] == [False, True, False]


def test_lines_above_a_function_change_nothing_of_it() -> None:
    one, other = lowered("a.py", PYTHON), lowered("a.py", f"# above\n\n{PYTHON}")
    assert one.code(1).dump() == other.code(1).dump()
    assert ModuleIR.load("a.py", other.dump()).code(1).first_row == one.code(1).first_row + 2


@pytest.mark.parametrize(("language", "data", "included"), [("cuda", b"x", ""), ("python", b"y", ""), ("python", b"x", "headers")])
def test_bytes_language_and_headers_decide(tmp_path: Path, language: str, data: bytes, included: str) -> None:
    cache = IntermediateCache(tmp_path)
    cache.keep(lowered("a.py", "x"), "python", b"x")
    assert cache.load("a.py", "python", b"x") is not None
    assert cache.load("a.py", language, data, included) is None


def test_what_is_not_whole_is_as_good_as_absent(tmp_path: Path) -> None:
    cache = IntermediateCache(tmp_path)
    cache.keep(lowered("a.py", PYTHON), "python", b"x")
    (record,) = (tmp_path / cache.store.folder.name / "ir").iterdir()
    whole = record.read_bytes()
    for damaged in (b"", whole[:40], whole[:-1], whole + b"x", whole.replace(b"f", b"g", 1)):
        record.write_bytes(damaged)
        assert cache.load("a.py", "python", b"x") is None
    record.write_bytes(whole)
    assert cache.load("a.py", "python", b"x") is not None


@pytest.mark.parametrize("body", [b"", b"no marshal", b"i\x01\x00\x00\x00", b"(\x01\x00\x00\x00N"])
def test_what_somebody_else_wrote_is_as_good_as_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    cache = IntermediateCache(tmp_path)
    cache.store.write_bytes("ir", intermediate._key("python", b"x", ""), body)
    assert cache.load("a.py", "python", b"x") is None


def test_other_parts_of_streamlint_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    for part in (*MADE_BY, "checks"):
        path = package / part if part.endswith(".py") else package / part / "a.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a = 1\n")
    monkeypatch.setattr(store, "PACKAGE", package)
    first = Store(tmp_path / "cache", MADE_BY).folder
    (package / "checks" / "a.py").write_text("a = 22\n")
    assert Store(tmp_path / "cache", MADE_BY).folder == first
    for part in MADE_BY:
        before = Store(tmp_path / "cache", MADE_BY).folder
        (package / part if part.endswith(".py") else package / part / "a.py").write_text("a = 333\n")
        assert Store(tmp_path / "cache", MADE_BY).folder != before


def test_parts_are_there_and_import_nothing_else() -> None:
    for part in MADE_BY:
        path = PACKAGE / part
        for source in [path] if path.is_file() else path.rglob("*.py"):
            imported = re.findall(r"^\s*(?:from|import) streamlint\.((?:support\.)?\w+)", source.read_text(encoding="utf-8"), re.MULTILINE)
            assert {name for name in imported if name not in MADE_BY and f"{name.replace('.', '/')}.py" not in MADE_BY} == set(), source


def test_they_are_cleaned_with_the_rest(tmp_path: Path) -> None:
    cache = IntermediateCache(tmp_path)
    cache.keep(lowered("a.py", "x"), "python", b"x")
    assert clean(tmp_path) == 1
    assert cache.load("a.py", "python", b"x") is None
