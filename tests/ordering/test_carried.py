"""What carries a value to where it is used: the walk comes back to the line that made it, and to no other."""

from __future__ import annotations

import pytest

from streamlint.config.options import Options, Source
from streamlint.frontends import python
from streamlint.hazards.findings import context_of
from streamlint.ir import ModuleIR
from streamlint.ir import opcodes as op
from streamlint.ir.modules import lower
from streamlint.transfer.carried import Carriers

MADE = """import functools
from collections import namedtuple
from dataclasses import dataclass
from typing import NamedTuple
import torch
mine = torch.empty(1)
other = torch.empty(2)
def use(value): pass
"""


def lowered(source: Source) -> ModuleIR:
    return lower(python.lower(source.path, source.text))


def rows(text: str) -> list[int]:
    """The lines where the value was made that ``use`` is given."""
    context = context_of([Source("program.py", MADE + text, "python")], Options(), lowered)
    functions = [function for unit in context.program.units.values() for function in unit.functions]
    carriers = Carriers(context.transfer)
    found: set[int] = set()
    for function in functions:
        for one in function.by_opcode[op.CALL]:
            if function.dotted(one[3]) == "use":
                sources = carriers.sources(function, one[5])
                found |= {each.function.code.at(each.instruction[1])[0] for each in sources if each.instruction is not None}
    return sorted(found)


@pytest.mark.parametrize(
    "text",
    [
        "def act(a, value): use(value)\ndef hand(**options): act(**options)\nhand(a=other, value=mine)\n",
        "def act(a, value): use(value)\ndef hand(*args): act(*args)\nhand(other, mine)\n",
        "def act(a, *rest): use(rest[0])\nact(other, mine)\n",
        "def act(a, **rest): use(rest['b'])\nact(other, b=mine, c=other)\n",
        "def logged(f):\n    @functools.wraps(f)\n    def inner(*args, **options): return f(*args, **options)\n    return inner\n"
        "@logged\ndef act(a, value): use(value)\nact(other, mine)\n",
        "@dataclass\nclass Job:\n    a: object\n    value: object\ndef act(job): use(job.value)\nact(Job(other, value=mine))\n",
        "class Pair(NamedTuple):\n    a: object\n    b: object\ndef act(pair): use(pair[1])\nact(Pair(other, mine))\n",
        "Pair = namedtuple('Pair', 'a b')\ndef act(pair):\n    a, b = pair\n    use(b)\nact(Pair(other, mine))\n",
        "def act(jobs): use(jobs[-1]['b'])\njobs = []\njobs.append({'a': other, 'b': mine})\nact(jobs)\n",
        "def make(): return other, mine\na, b = make()\nuse(b)\n",
        "def outer(a, b):\n    def inner(): use(b)\n    inner()\nouter(other, mine)\n",
        "class Keeper:\n    def put(self, a, b): self.a, self.b = a, b\n    def take(self): use(self.b)\n"
        "keeper = Keeper()\nkeeper.put(other, mine)\nkeeper.take()\n",
        "class Keeper:\n    def __init__(self, b): self.b = b\nuse(Keeper(mine).b)\nKeeper(other)\n",
        "def same(x): return x\nuse(same(mine))\nsame(other)\n",
        "def act(value=mine): use(value)\nact()\n",
        "table = {'a': other}\ntable['b'] = mine\nuse(table.get('b'))\n",
    ],
)
def test_carriers(text: str) -> None:
    assert rows(text) == [6]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("def act(value): use(value)\nact(mine)\nact(other)\n", [6, 7]),  # both callers
        ("def act(value): use(value)\n", [9]),  # nobody in view calls it
        ("def act(table, key): use(table[key])\nact({'a': other, 'b': mine}, input())\n", [6, 7]),  # any element
        ("def act(job): use(job.value)\n", [9]),  # an attribute of what nobody knows
        ("use(mine + other)\n", [9]),  # made there
    ],
)
def test_ends(text: str, made: list[int]) -> None:
    """Where there are several ways, all count; where nothing leads on, the value is taken as it stands."""
    assert rows(text) == made
