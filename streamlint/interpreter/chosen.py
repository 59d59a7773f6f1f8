"""Who chose what a call is given: its own code, whoever calls for it, or an object that holds it and hands it through."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.run import Run
from streamlint.interpreter.standing import way_to


def is_chosen_here(run: Run, node: p.Expression | None) -> bool:
    """Whether a call chooses for itself what an argument says, or whoever calls for it does: what an object holds and hands through is
    another one's choice."""
    for depth in range(len(run.frames) - 1, 0, -1):
        frame, caller = run.frames[depth], run.frames[depth - 1]
        names = [param.name for param in frame.function.params] if frame.function is not None else []
        if not isinstance(node, p.Name) or node.id not in names:
            return (
                node is None
                or depth == len(run.frames) - 1
                or isinstance(node, p.Call)
                or not any(isinstance(part, p.Attr) for part in p.walk(node))
            )
        way = way_to(tuple(caller.function.body), frame.call) if caller.function is not None and frame.call is not None else ()
        call = way[-1] if way else None
        if not isinstance(call, p.Call):
            return True
        position = names.index(node.id) - (names[0] in ("self", "cls"))
        node = p.argument(call, position, node.id)
    return True
