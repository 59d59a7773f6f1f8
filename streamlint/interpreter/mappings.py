"""C++: what the methods of ``std::map`` and ``std::unordered_map`` do with values that are held under keys.

A key that was put in is there; of any other nothing tells. An iterator is the pair that it points to.
"""

from __future__ import annotations

from streamlint.interpreter import items
from streamlint.interpreter.arguments import Arguments
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Const, Opaque, Series, Table, Value

_PUT = frozenset({"try_emplace", "emplace", "insert_or_assign"})


def call_mapping_method(run: Run, receiver: Table, name: str, arguments: Arguments) -> Value | None:
    """A method of a C++ mapping; None if it is not one that matters."""
    given = arguments.positional
    if not given:
        return None
    key = given[0]
    if name in _PUT:
        return _put(run, receiver, name, key, given[1:])
    if name == "find":
        return _iterator(run, receiver, key)
    if name == "at":
        return items.element_of(run, receiver, key.term)
    if name in ("count", "contains") and key.term in receiver.keys:
        return Const(1 if name == "count" else True)
    if name == "erase":
        receiver.keys.pop(key.term, None)
        receiver.items.pop(key.term, None)
        return Const(None)
    return None


def _put(run: Run, receiver: Table, name: str, key: Value, given: list[Value]) -> Value:
    """Put a value under a key: where there is one it stays, but with ``insert_or_assign``. The answer says whether it is new."""
    known = key.term in receiver.keys
    if len(given) == 1 and (name == "insert_or_assign" or (name == "emplace" and not known)):
        receiver.items[key.term] = given[0]
    receiver.keys[key.term] = key
    fresh = Const(False) if known else run.opaque(f"{receiver.term} took {key.term}")
    return Series([_iterator(run, receiver, key), fresh], kind="tuple")


def _iterator(run: Run, receiver: Table, key: Value) -> Value:
    pair: dict[str, Value] = {"first": key, "second": items.element_of(run, receiver, key.term)}
    return Opaque(f"{receiver.term}.find({key.term})", attrs=pair)
