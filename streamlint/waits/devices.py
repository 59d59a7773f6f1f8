"""Devices that a program chooses among when it runs: what is asked is what happens where there is a GPU.

``"cuda" if torch.cuda.is_available() else "cpu"`` is the GPU wherever a wait for it can be seen, and so is what ``if cuda: x = x.cuda()``
moves. A parameter whose default is the GPU may be one.
"""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Constant, Object
from streamlint.facts.values.selectors import DEVICE_WORDS, HOST_WORDS
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

_DEVICE = "device"


def on_gpu(function: Function, one: Instruction) -> list[int]:
    """The registers of a choice that hold what it gives where there is a GPU; all of them where it is no such choice."""
    registers = list(one[3:])
    words = {register: _words(function, register, set()) for register in registers}
    if any(DEVICE_WORDS.intersection(each) for each in words.values()):
        return [register for register in registers if not words[register] or not words[register] <= HOST_WORDS]
    moved = {source for register in registers if (source := _moved_from(function, register)) is not None}
    return [register for register in registers if register not in moved]


def names_gpu(value: Object) -> bool:
    """Whether a value is a text that names a GPU."""
    return isinstance(value, Constant) and isinstance(value.value, str) and value.value.partition(":")[0] in DEVICE_WORDS


def _words(function: Function, register: int, seen: set[int]) -> frozenset[str]:
    """The kinds of devices that a register may hold, where each of them is written out; none where it may hold anything else."""
    one = function.definitions[register] if register >= 0 and register not in seen else None
    seen.add(register)
    if one is None:
        return frozenset()
    if one[0] == op.PHI:
        parts = [_words(function, part, seen) for part in one[3:]]
        return frozenset().union(*parts) if all(parts) else frozenset()
    if one[0] in (op.CALL, op.INVOKE) and len(one) > 5:
        name = last_name(function, one)
        given = one[6] if one[0] == op.INVOKE and len(one) > 6 else one[5] if one[0] == op.CALL else op.NONE
        return _words(function, given, seen) if name == _DEVICE else frozenset()
    word = function.constant(register)
    return frozenset({word.partition(":")[0]}) if isinstance(word, str) else frozenset()


def _moved_from(function: Function, register: int) -> int | None:
    """The register of ``x`` where one holds ``x.cuda()``."""
    one = function.definitions[register] if register >= 0 else None
    return one[3] if one is not None and one[0] == op.INVOKE and function.text(one[4]) == "cuda" else None
