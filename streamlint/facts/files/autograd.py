"""Functions of autograd: classes whose ``apply`` runs ``forward`` with a context before the arguments that it is given."""

from __future__ import annotations

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import arguments_of, last_name
from streamlint.facts.files.hierarchy import Hierarchy
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op


def is_differentiated(hierarchy: Hierarchy, definition: ClassInfo) -> bool:
    """Whether a class is a function of autograd."""
    return not definition.unit.models.marked("differentiated").isdisjoint(hierarchy.libraries(definition))


def is_of_autograd(hierarchy: Hierarchy, method: Function) -> bool:
    """Whether a function is a static method of a function of autograd."""
    return method.is_static and method.owner is not None and is_differentiated(hierarchy, method.owner)


def has_context(method: Function) -> bool:
    """Whether a ``forward`` takes the context: it does unless a method of its own sets that up."""
    return method.owner is None or "setup_context" not in method.owner.methods


def offset_of(function: Function, call: Instruction, callee: Function) -> int | None:
    """How many parameters of a callee come before the first argument of a call; None if the call hands over no arguments of its."""
    name = callee.code.name
    if callee.has_receiver:
        return 1
    if name not in ("forward", "backward") or not callee.is_static or last_name(function, call) == name:
        return 0
    if name == "backward":
        return None
    return 1 if has_context(callee) else 0


def given_for(caller: Function, call: Instruction, callee: Function, index: int) -> int | None:
    """The register that a call hands over for a parameter."""
    offset, parameter = offset_of(caller, call, callee), callee.code.parameters[index]
    for place, (register, kind) in enumerate(arguments_of(caller, call)):
        if kind == parameter.name or (kind is None and offset is not None and place + offset == index):
            return register
    return None


def is_context(function: Function, one: Instruction) -> bool:
    """Whether an instruction is the parameter for the context: what ``forward`` keeps there are settings and tensors of the call."""
    return one[0] == op.PARAM and one[3] == 0 and takes_context(function)


def takes_context(function: Function) -> bool:
    """Whether the first parameter of a function is the context."""
    is_step = function.code.name in ("backward", "setup_context") or (function.code.name == "forward" and has_context(function))
    return function.is_static and function.owner is not None and is_step
