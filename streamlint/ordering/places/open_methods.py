"""Methods that unknown callers call: nobody says in which order."""

from __future__ import annotations

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.values.constructions import is_constructor
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.transfer import Transfer


def open_methods(transfer: Transfer, function: Function) -> list[Function]:
    """The methods of a class that no known code calls, if a function is one of them."""
    owner = function.owner if function.method is function and function.has_receiver and not function.is_cpp else None
    found = _called_by_nobody(transfer, owner) if owner is not None else []
    return found if function in found else []


def backward_passes(transfer: Transfer, function: Function) -> list[tuple[Function, Instruction]]:
    """The backward passes in such methods of an object, by a constructor that no known code calls: they run what that has registered."""
    owner = function.owner if is_constructor(function) and not function.is_cpp and not transfer.callers(function) else None
    methods = _called_by_nobody(transfer, owner) if owner is not None else []
    calls = ((method, one) for method in methods for one in method.by_opcode[op.INVOKE])
    return [(method, one) for method, one in calls if any(work.leaves for work in transfer.works(method, one))]


def _called_by_nobody(transfer: Transfer, owner: ClassInfo) -> list[Function]:
    methods = (each for named in owner.methods.values() for each in named)
    return [each for each in methods if each.has_receiver and each.code.name != "__init__" and not transfer.callers(each)]
