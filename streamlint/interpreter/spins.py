"""Loops that do nothing but ask: the host polls an event or a stream, and neither sleeps nor works meanwhile."""

from __future__ import annotations

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.run import Run

_KEYWORDS = {"while": 5, "do": 2, "for": 3, "c-for": 3}


def note_spin(run: Run, node: p.Loop, first: int) -> None:
    """Note that a loop polls: all that it calls are queries. ``first`` is the place on the path where the loop began."""
    queries = [op for op in run.machine.operations[first:] if isinstance(op, ops.Query)]
    if not queries or node.kind == "for":
        return
    asked = {query.span for query in queries}
    parts = [part for part in (node.test, node.update, *node.body) if part is not None]
    for part in parts:
        for item in p.walk(part):
            if isinstance(item, p.Launch | p.Yield | p.Await | p.With) or (isinstance(item, p.Call) and not _is(run, item, asked)):
                return
    row, column = node.at[:2]
    head = Span(run.file.path, row, column, row, column + _KEYWORDS[node.kind])
    last = queries[-1]
    run.machine.note(ops.Spin(head, last.api, last.name, of=last.of, query=last.span))


def waits_for_a_flag(run: Run, node: p.Loop, first: int) -> bool:
    """Whether a loop only asks for a flag of the host, over and over: it does nothing on the device, and nothing itself that ends it."""
    if node.kind == "for" or node.test is None or isinstance(node.test, p.Const):
        return False
    works = any(not isinstance(operation, ops.Opaque | ops.HostRead) for operation in run.machine.operations[first:])
    parts = (part for part in (node.update, *node.body) if part is not None)
    changes = any(isinstance(item, p.Assign | p.AssignExpr) for part in parts for item in p.walk(part))
    return not works and not changes


def _is(run: Run, call: p.Call, spans: set[Span]) -> bool:
    return run.span(p.called_at(call)) in spans
