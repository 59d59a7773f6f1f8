"""Which files may say something about a file."""

from __future__ import annotations

from functools import partial

from streamlint.facts.files.neighbours import Neighbours
from streamlint.facts.files.program import Program, SourceFile
from streamlint.frontends import python
from streamlint.frontends.cuda import lower as lower_cuda
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower

FILES = {
    "app/main.py": "from app.step import step\nstep()\n",
    "app/step.py": "from app import _native\ndef step(): return _native.scale(1)\n",
    "app/other.py": "def step(): return 2\n",
    "app/scale.cu": "void scale(int n) { fill(n); }\n",
    "app/fill.cu": "void fill(int n) {}\n",
    "app/alone.cu": "void fill(int n) {}\nvoid go() { fill(1); }\n",
}


def _lowered(path: str, text: str) -> ModuleIR:
    return lower(lower_cuda(path, text) if path.endswith(".cu") else python.lower(path, text))


def near(path: str, most: int) -> list[str]:
    languages = {".py": "python", ".cu": "cuda"}
    sources = [SourceFile(one, languages[one[-3:]], text, partial(_lowered, one, text)) for one, text in FILES.items()]
    return Neighbours(Program(sources)).near(path, most)


def test_imports_lead_both_ways() -> None:
    assert near("app/main.py", 1) == ["app/main.py", "app/step.py"]
    assert "app/main.py" in near("app/step.py", 5)


def test_names_of_functions_lead_to_cpp_and_back() -> None:
    assert "app/scale.cu" in near("app/step.py", 5)
    assert "app/step.py" in near("app/scale.cu", 5)
    assert "app/fill.cu" in near("app/scale.cu", 5)


def test_a_file_with_a_function_of_its_own_asks_for_no_other() -> None:
    assert "app/fill.cu" not in near("app/alone.cu", 1)
    assert near("app/other.py", 5) == ["app/other.py"]
