"""C++: which locks a body holds while it waits for the device, by its text: scopes, and what is unlocked and locked again."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.guards import called_name, lvalue
from streamlint.interpreter.spelling import ends_in

_LOCKS = ("std::lock_guard", "std::unique_lock", "std::scoped_lock", "std::shared_lock")
_WAITS = frozenset({("synchronize",)})
_SCOPES = (p.Block, p.If, p.Loop, p.Try, p.Switch, p.Scope)

Held = dict[str, tuple[str, bool]]  # by variable: the lock, and whether it is held now


def held_over_waits(function: p.Function) -> set[str]:
    """The locks, with the class whose they are, that are held at some wait for the device."""
    if not any(ends_in(called_name(node.function), _WAITS) for node in p.walk(function) if isinstance(node, p.Call)):
        return set()
    found: set[str] = set()
    held: Held = {}
    for statement in function.body:
        _visit(statement, held, found)
    owner = f"{function.class_name}::" if function.class_name else ""
    return {owner + lock for lock in found}


def _visit(node: object, held: Held, found: set[str]) -> None:
    if isinstance(node, p.Lambda | p.FunctionDef | p.ClassDef):
        return  # runs elsewhere, or later
    inner = dict(held) if isinstance(node, _SCOPES) else held
    for child in p.children(node):
        _visit(child, inner, found)
    if isinstance(node, p.Declare) and node.type.name in _LOCKS and node.args:
        held[node.name] = (last_name(node.args[0].value), True)
    elif isinstance(node, p.Call):
        name = called_name(node.function)
        if name in ("lock", "unlock") and isinstance(node.function, p.Attr):
            variable = last_name(node.function.value)
            held[variable] = (held.get(variable, (variable, False))[0], name == "lock")
        elif ends_in(name, _WAITS):
            found.update(lock for lock, now in held.values() if now)


def last_name(node: object) -> str:
    """The last name of an expression: ``mutex_`` of ``&writer->mutex_``."""
    return (lvalue(node.value if isinstance(node, p.AddressOf) else node) or "").rpartition(".")[2].rpartition("::")[2]
