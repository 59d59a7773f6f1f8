"""Which files import one, and which instructions of a file read a name out of a text or a table of names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

_LISTING = ("globals", "locals", "vars", "eval", "exec")
_WORDS = re.compile(r"\w+")


def importers(unit: Unit) -> Iterator[Unit]:
    """The other files that import a file."""
    program = unit.program
    folder, _, name = unit.path.rpartition("/")
    stem = name.removesuffix(".py") if name != "__init__.py" else folder.rpartition("/")[2]
    for other in program.mentioning(stem):
        if other is not unit and not other.is_cpp:
            given = ((module, f"{module}{'' if module.endswith('.') else '.'}{taken}") for module, taken in other.imports)
            if any(stem in each and program.imported(each, other) is unit for pair in given for each in pair):
                yield other


def lists_names(unit: Unit) -> bool:
    """Whether a file may take a function of its own by a name that it computes; one that is written out is a text."""
    if any(not _is_of_object(function, one[3]) for function, one in unit.attribute_uses.get("__dict__", ())):
        return True
    named = (use for word in _LISTING for use in unit.name_uses.get(word, ()))
    return any(_is_computed(function, use) for function, name in named for use in function.uses[name[2]])


def _is_of_object(function: Function, register: int) -> bool:
    """Whether a register holds what a function was given, or an attribute of that: an object has no table of functions."""
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] == op.ATTR:
        one = function.definitions[one[3]]
    return one is not None and one[0] in (op.PARAM, op.LOAD)


def _is_computed(function: Function, call: Instruction) -> bool:
    """Whether an instruction calls what gives a table of names, or hands it on, for more than to look up one that is written out."""
    if call[0] != op.CALL or len(call) > 5:
        return not (call[0] == op.CALL and function.dotted(call[3]) == "vars" and _is_of_object(function, call[5]))
    return not all(any(isinstance(function.constant(part), str) for part in _keys(function, use)) for use in function.uses[call[2]])


def _keys(function: Function, use: Instruction) -> tuple[int, ...]:
    """The registers of what an instruction looks up in a table."""
    if use[0] == op.ITEM:
        return (use[4],)
    if use[0] == op.COMPARE:
        return (use[4],) if function.text(use[3]) in ("in", "not in") else ()
    return use[6:7] if use[0] == op.INVOKE and function.invokes(use, "looks-up") else ()


def texts_of(unit: Unit, name: str) -> Iterator[tuple[Function, Instruction]]:
    """The instructions that read a text which has a name as a word, and no blank."""
    for function in unit.functions:
        for one in function.by_opcode[op.CONST]:
            text = function.constant(one[2])
            if isinstance(text, str) and name in text and " " not in text and name in _WORDS.findall(text):
                yield function, one
