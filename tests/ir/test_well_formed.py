"""The intermediate representation of all sources at hand is well-formed: what SSA form and the tables promise holds."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlint.frontends import UnreadableSource
from streamlint.ir import Code, ModuleIR
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Graph
from streamlint.ir.modules import lower
from streamlint.support.reading import language_of

sys.path.insert(0, str(Path(__file__).parent))
from ir_documents import DOCUMENTS, FRONT_ENDS, read

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(python|cuda|cython)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FOLDERS = [ROOT / "examples", ROOT / "streamlint" / "ir", ROOT / "streamlint" / "frontends", ROOT / "streamlint" / "verify"]


def defects(module: ModuleIR, code: Code) -> Iterator[str]:
    """What is wrong with a code."""
    graph = Graph.of(code)
    before = code.predecessors()
    defined: dict[int, tuple[int, int]] = {}
    for block, instructions in enumerate(code.blocks):
        for index, one in enumerate(instructions):
            if op.DEFINES[one[0]]:
                if one[2] in defined:
                    yield f"r{one[2]} is defined twice"
                defined[one[2]] = block, index
    if not {*code.statics, *(one for one in code.declared if one != op.NONE)} <= set(defined):
        yield "a static variable, or what a comment declares, has no register"
    if sorted(defined) != list(range(code.registers)):
        yield "registers are not numbered without gaps"
    if graph.order and set(graph.order) != set(range(len(code.blocks))):
        yield "a block is not reachable"
    for block, instructions in enumerate(code.blocks):
        if [one[0] in op.TERMINATORS for one in instructions] != [False] * (len(instructions) - 1) + [True]:
            yield f"b{block} does not end with its only terminator"
        for index, one in enumerate(instructions):
            yield from _operand_defects(module, code, one)
            if one[0] == op.PHI:
                reads = list(zip(one[3:], before[block], strict=True)) if len(one) - 3 == len(before[block]) else []
                if not reads:
                    yield f"a phi of b{block} has not one operand for each predecessor"
                late = [name for name, source in reads if not _is_defined(graph, defined, name, source, len(code.blocks[source]))]
            else:
                late = [register for register in _reads(one) if not _is_defined(graph, defined, register, block, index)]
            if late:
                yield f"{op.NAMES[one[0]]} in b{block} reads what is not defined yet: {late}"


def _reads(one: tuple[int, ...]) -> list[int]:
    fixed = op.FIXED[one[0]]
    found = [operand for letter, operand in zip(fixed, one[2:], strict=False) if letter in "rR" and operand >= 0]
    return found + [operand for operand in one[2 + len(fixed) :] if operand >= 0]


def _is_defined(graph: Graph, defined: dict[int, tuple[int, int]], register: int, block: int, index: int) -> bool:
    where = defined.get(register)
    if where is None:
        return False
    return where[1] < index if where[0] == block else graph.dominates(where[0], block)


def _operand_defects(module: ModuleIR, code: Code, one: tuple[int, ...]) -> Iterator[str]:
    name, fixed = op.NAMES[one[0]], op.FIXED[one[0]]
    if len(one) - 2 < len(fixed) or (len(one) - 2 > len(fixed) and not op.REPEATED[one[0]]):
        yield f"{name} has {len(one) - 2} operands"
    if not op.NONE <= one[1] < len(code.positions):
        yield f"{name} stands nowhere"
    for letter, operand in zip(fixed, one[2:], strict=False):
        most = {"k": len(module.constants), "K": len(module.constants), "b": len(code.blocks)}.get(letter, operand + 1)
        least = 0 if letter in "drkb" else op.NONE
        if not least <= operand < most:
            yield f"{name} has the operand {operand} for {letter}"


def check(path: str, language: str, text: str) -> None:
    try:
        module = lower(FRONT_ENDS[language](path, text))
    except UnreadableSource:
        return
    module = ModuleIR.load(path, module.dump())
    for code in module.codes():
        assert list(defects(module, code)) == [], f"{path}: {code.qualname}\n{text[:2000]}"


@pytest.mark.parametrize("document", [*DOCUMENTS], ids=lambda path: path.stem)
def test_the_sources_of_the_documents(document: Path) -> None:
    for section in read(document):
        check(section.title, section.language, section.source)


@pytest.mark.parametrize("document", sorted((ROOT / "tests" / "rules").glob("*.md")), ids=lambda path: path.stem)
def test_the_sources_of_the_rules_documents(document: Path) -> None:
    for found in _FENCE.finditer(document.read_text(encoding="utf-8")):
        check(document.stem, found[1], found[2])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_files(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        language = language_of(str(path))
        if language is not None and path.is_file():
            check(str(path), language, path.read_text(encoding="utf-8"))


def test_defects_are_seen() -> None:
    module = lower(FRONT_ENDS["python"]("test.py", "def f(a):\n    if a:\n        b = g()\n    return b\n"))
    code = module.code(1)
    assert list(defects(module, code)) == []
    whole = [list(block) for block in code.blocks]
    damages = {
        "defined twice": lambda: code.blocks[1].insert(0, code.blocks[0][1]),
        "not defined yet": lambda: code.blocks[1].insert(0, (op.BIND, -1, 0, code.registers - 1)),
        "only terminator": lambda: code.blocks[0].pop(),
        "operands": lambda: code.blocks[0].insert(0, (op.BIND, -1, 0)),
        "operand 99999": lambda: code.blocks[0].insert(0, (op.BIND, -1, 99999, 1)),
        "stands nowhere": lambda: code.blocks[0].insert(2, (op.BIND, 999, 0, 0)),
        "one operand for each": lambda: code.blocks[3].__setitem__(0, code.blocks[3][0][:-1]),
    }
    for told, damage in damages.items():
        code.blocks = [list(block) for block in whole]
        damage()
        assert any(told in one for one in defects(module, code)), told


def test_registers_beside_instructions_are_numbered_as_these() -> None:
    loop = "int s = 0;\n  for (int i = 0; i < n; i++) { s += i; if (s > 3) { s = g(s); } }\n  "
    text = f"void f(int n) {{\n  {loop}static float* p = new float[s];\n  float* q = take(s);  // streamlint: pinned\n  use(p, q);\n}}\n"
    module = lower(FRONT_ENDS["cuda"]("a.cu", text))
    code = next(one for one in module.codes() if one.name == "f")
    assert list(defects(module, code)) == []
    made = {one[2]: one for block in code.blocks for one in block if op.DEFINES[one[0]]}
    rows = [code.at(made[register][1])[0] for register in (*code.statics, *code.declared)]
    assert rows == [4, 5]
