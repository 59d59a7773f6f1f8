"""Loops that only ask for a flag of the host."""

from __future__ import annotations

from streamlint import operations as ops
from streamlint import program as p
from streamlint.interpreter.run import Run


def waits_for_a_flag(run: Run, node: p.Loop, first: int) -> bool:
    """Whether a loop only asks for a flag of the host, over and over: it does nothing on the device, and nothing itself that ends it."""
    if node.kind == "for" or node.test is None or isinstance(node.test, p.Const):
        return False
    works = any(not isinstance(operation, ops.Opaque | ops.HostRead) for operation in run.machine.operations[first:])
    parts = (part for part in (node.update, *node.body) if part is not None)
    changes = any(isinstance(item, p.Assign | p.AssignExpr) for part in parts for item in p.walk(part))
    return not works and not changes
