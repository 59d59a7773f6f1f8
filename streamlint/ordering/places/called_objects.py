"""Objects that are called: what a register holds (``model(x)``), or what an attribute does (``self.layer(x)``)."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Instance
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op


def called_object(facts: Facts, function: Function, one: Instruction, callee: Function) -> tuple[int, tuple[str, ...]] | None:
    """The register from which a call takes the object whose method it runs without naming it, and the attributes that lead to that
    object; None of other calls."""
    if one[0] == op.CALL:
        is_object = any(isinstance(value, Instance) for value in facts.values(function, one[3]).values)
        return (one[3], ()) if is_object else None
    name = function.text(one[4]) if one[0] == op.INVOKE and not function.is_cpp else callee.code.name
    is_object = name != callee.code.name and any(isinstance(value, Instance) for value in facts.callees(function, one))
    return (one[3], (name,)) if is_object else None
