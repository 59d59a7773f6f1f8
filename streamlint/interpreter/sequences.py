"""C++: what the methods of ``std::vector``, ``std::array`` and the queues do with values that are held one by one."""

from __future__ import annotations

from streamlint.interpreter import items
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.containers import LONGEST
from streamlint.interpreter.copies import alike
from streamlint.interpreter.declarations import construct
from streamlint.interpreter.held import append, at_end, take_last
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Const, Series, Value

_ADD = frozenset({"push", "push_back", "emplace_back", "emplace", "push_front", "emplace_front"})
_SAME = frozenset({"begin", "end", "cbegin", "cend", "rbegin", "rend", "data"})
_FIRST = frozenset({"front", "pop_front"})
_QUEUES = ("std::queue", "queue")


def call_sequence_method(run: Run, receiver: Series, name: str, arguments: Arguments, site: CallSite) -> Value | None:
    """A method of a C++ sequence; None if it is not one that matters."""
    given = arguments.positional
    if name in _ADD:
        return _add(run, receiver, name, arguments, site)
    if name in ("front", "back", "top", "at"):
        return _peek(run, receiver, name, given)
    if name in ("pop", "pop_back", "pop_front"):
        if receiver.items is None and _is_of_end(receiver, name):
            take_last(receiver)
        elif receiver.items:
            receiver.items.pop(0 if name in _FIRST or (name == "pop" and receiver.kind in _QUEUES) else -1)
        return Const(None)
    if name in ("size", "empty"):
        known = receiver.items is not None and receiver.name != "open"
        if not known:
            return Const(False) if name == "empty" and at_end(receiver) else run.opaque(f"{receiver.term}.{name}")
        count = len(receiver.items or ())
        return Const(count if name == "size" else count == 0)
    if name in ("resize", "assign") and given:
        _resize(run, receiver, given, name, site)
        return Const(None)
    if name == "clear":
        if receiver.items is not None:
            receiver.items.clear()
        receiver.made.clear()
        return Const(None)
    if name == "reserve":
        return Const(None)
    return receiver if name in _SAME else None


def _add(run: Run, receiver: Series, name: str, arguments: Arguments, site: CallSite) -> Value:
    value = arguments.positional[0] if arguments.positional else None
    if name.startswith("emplace") and receiver.holds is not None:
        value = construct(run, receiver.holds, [(None, v) for v in arguments.positional], site.span, f"{receiver.name}[]", site.node)
    if value is None:
        return Const(None)
    if receiver.items is None:
        append(receiver, value)
    elif name.endswith("_front"):
        receiver.items.insert(0, value)
    else:
        receiver.items.append(value)
    return value


def _peek(run: Run, receiver: Series, name: str, given: list[Value]) -> Value:
    if name == "at" and given:
        return items.of_series(run, receiver, given[0])
    if receiver.items:
        return receiver.items[0 if name == "front" or (name == "top" and receiver.kind in _QUEUES) else -1]
    last = at_end(receiver) if _is_of_end(receiver, name) else None
    return last or items.element_of(run, receiver, name)


def _is_of_end(receiver: Series, name: str) -> bool:
    """Whether a method has to do with the last element."""
    return name.endswith("back") or (name in ("top", "pop") and receiver.kind not in _QUEUES)


def _resize(run: Run, receiver: Series, given: list[Value], name: str, site: CallSite) -> None:
    count = given[0].value if isinstance(given[0], Const) and isinstance(given[0].value, int) else None
    filled = given[1] if len(given) > 1 else None
    if filled is None and receiver.holds is not None:
        filled = construct(run, receiver.holds, [], site.span, f"{receiver.name}[]", site.node) if _has_value(receiver) else None
    held = list(receiver.items or ()) if name == "resize" else []
    if count is not None and count <= LONGEST:
        more = [alike(run, filled, f"{receiver.name}[{n}]") for n in range(len(held), count)]
        receiver.items = [*held, *more][:count]
        return
    if not held:
        receiver.items, receiver.element = None, filled


def _has_value(receiver: Series) -> bool:
    """Whether a new element is something already: an object or a container, no stream, event or pointer that is given later."""
    return receiver.holds is not None and not receiver.holds.pointers and "_t" not in receiver.holds.name[-2:]
