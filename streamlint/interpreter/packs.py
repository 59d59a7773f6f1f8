"""Parameter packs of C++: a pattern before ``...`` is evaluated once for each of their elements."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Environment, Series, Value


def expanded(run: Run, pattern: p.Expression) -> list[Value] | None:
    """What ``pattern...`` gives; None where it names no pack whose elements are known."""
    environment = run.frame.environment
    packs: dict[str, list[Value]] = {}
    for node in p.walk(pattern):
        scope = environment.find(node.id) if isinstance(node, p.Name) else None
        held = scope.names[node.id] if scope is not None and isinstance(node, p.Name) else None
        if isinstance(held, Series) and held.kind == "tuple" and held.items is not None and isinstance(node, p.Name):
            packs[node.id] = held.items
    if not packs:
        return None
    found: list[Value] = []
    for number in range(min(map(len, packs.values()))):
        run.frame.environment = Environment({name: items[number] for name, items in packs.items()}, environment)
        try:
            found.append(run.evaluate(pattern))
        finally:
            run.frame.environment = environment
    return found
