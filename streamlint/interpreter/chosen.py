"""Who chose what a call is given: its own code, whoever calls for it, or an object that holds it and hands it through."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.at_hand import contains
from streamlint.interpreter.run import Run


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
        way = _way_to(tuple(caller.function.body), frame.call) if caller.function is not None and frame.call is not None else ()
        call = way[-1] if way else None
        if not isinstance(call, p.Call):
            return True
        position = names.index(node.id) - (names[0] in ("self", "cls"))
        node = p.argument(call, position, node.id)
    return True


@functools.lru_cache(maxsize=4096)
def _way_to(body: tuple[object, ...], span: Span) -> tuple[object, ...]:
    """The nodes from a statement down to the one that stands at ``span``: the call of that name, or the innermost that holds it."""
    wanted = span.at
    way: list[object] = []
    level: Sequence[object] = body
    while True:
        below = next((node for node in level if _holds(node, wanted)), None)
        if below is None:
            break
        way.append(below)
        level = p.children(below)
    for index in range(len(way) - 1, -1, -1):
        node = way[index]
        if isinstance(node, p.Call) and node.name_at == wanted:
            return tuple(way[: index + 1])
    return tuple(way)


def _holds(node: object, wanted: p.Position) -> bool:
    at: p.Position = getattr(node, "at", p.NOWHERE)
    if at != p.NOWHERE:
        return contains(at, wanted)
    return any(_holds(child, wanted) for child in p.children(node))
