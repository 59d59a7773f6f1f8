"""Functions that Python calls by the C API: what they are given, and the variables that take a tuple of arguments apart."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.graph.facts import Facts
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers


def is_of_c(function: Function, callee: Function) -> bool:
    """Whether Python calls a function by the C API: it is given the module, and an object or a tuple of the arguments."""
    if function.is_cpp or not callee.is_cpp or callee.owner is not None:
        return False
    kinds = [parameter.type for parameter in callee.code.parameters]
    return len(kinds) == 2 and all(kind is not None and kind[0] == "PyObject" and kind[2] == 1 for kind in kinds)


def taken_apart(facts: Facts, function: Function) -> dict[object, int]:
    """By the key of a variable: the number of the argument that is put there (``PyArg_ParseTuple``)."""
    found: dict[object, int] = {}
    for one in function.by_opcode[op.CALL] if function.is_cpp and function.owner is None else ():
        row = facts.cpp_models.calls.get(function.dotted(one[3]))
        begins = int(str(row.get("from"))) if row is not None and row.effect == "unpack" else None
        given = argument_registers(function, one)[begins:] if begins is not None else ()
        for index, (_, register) in enumerate(given):
            address = function.definitions[register] if register >= 0 else None
            if address is not None and address[0] == op.ADDRESS:
                found[function.unit.ir.constants[address[3]]] = index
    return found
