"""Methods of Python's containers, as far as they move values: lists, dicts, and batches that are treated as such."""

from __future__ import annotations

from streamlint.interpreter import batches, held, items
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.builtins import integer
from streamlint.interpreter.mappings import call_mapping_method
from streamlint.interpreter.run import Run
from streamlint.interpreter.sequences import call_sequence_method
from streamlint.interpreter.taken_apart import Pairs, Parts
from streamlint.interpreter.values import Buffer, Const, Series, Table, Value


def call_container_method(run: Run, receiver: Value, name: str, arguments: Arguments, site: CallSite) -> Value | None:
    """A method of a list, a dict, or a batch of unknown structure; None if it is not one that moves values."""
    if isinstance(receiver, Series):
        if run.file.is_cuda:
            return call_sequence_method(run, receiver, name, arguments, site)
        return _series_method(run, receiver, name, arguments)
    if isinstance(receiver, Table):
        found = call_mapping_method(run, receiver, name, arguments) if run.file.is_cuda else None
        return found if found is not None else _table_method(run, receiver, name, arguments)
    if isinstance(receiver, Buffer):
        return _batch_method(run, receiver, name, arguments)
    return run.opaque(f"{receiver.term}.{name}{run.visit_key(site.node)}", *arguments.all())


def _series_method(run: Run, receiver: Series, name: str, arguments: Arguments) -> Value | None:
    given = arguments.positional
    if name in ("append", "add", "appendleft") and given:
        if receiver.items is None:
            held.append(receiver, given[0])
        elif name == "appendleft":
            receiver.items.insert(0, given[0])
        else:
            receiver.items.append(given[0])
        return Const(None)
    if name == "extend" and given:
        if receiver.items is not None and isinstance(given[0], Series) and given[0].items is not None:
            receiver.items.extend(given[0].items)
        else:
            held.put_somewhere(receiver, items.element_of(run, given[0], "0"))
        return Const(None)
    if name in ("pop", "popleft"):
        if receiver.items:
            return receiver.items.pop(0 if name == "popleft" or (given and integer(given[0]) == 0) else -1)
        last = held.at_end(receiver) if name == "pop" and (not given or integer(given[0]) == -1) else None
        held.take_last(receiver) if last is not None else held.mix(receiver)
        return last or items.element_of(run, receiver, name)
    if name == "clear":
        if receiver.items is not None:
            receiver.items.clear()
        receiver.made.clear()
        return Const(None)
    if name == "copy":
        return Series(list(receiver.items) if receiver.items is not None else None, dict(receiver.made), receiver.element)
    if name in ("sort", "reverse", "remove", "insert"):
        held.mix(receiver)
    if name in ("sort", "reverse", "remove", "index", "count", "insert"):
        return run.opaque(f"{receiver.term}.{name}")
    return None


def _table_method(run: Run, receiver: Table, name: str, arguments: Arguments) -> Value | None:
    given = arguments.positional
    if isinstance(receiver.items, Parts) and name in ("items", "values"):
        return Series(None, made=Pairs(run, receiver.items) if name == "items" else receiver.items)
    if name == "items":
        pairs: list[Value] = [Series([receiver.keys.get(k) or run.opaque(k), v], kind="tuple") for k, v in receiver.items.items()]
        return Series(pairs) if receiver.complete or pairs else Series(None, name=f"{receiver.term}.items")
    if name == "values":
        return (
            Series(list(receiver.items.values())) if receiver.items or receiver.complete else Series(None, name=f"{receiver.term}.values")
        )
    if name == "keys":
        return Series([receiver.keys.get(k) or run.opaque(k) for k in receiver.items])
    if name in ("get", "pop", "setdefault") and given:
        held = receiver.items.get(given[0].term)
        if held is not None:
            return held
        if name == "setdefault" and len(given) > 1:
            receiver.items[given[0].term] = given[1]
            return given[1]
        if (
            receiver.complete
            and isinstance(given[0], Const)
            and all(isinstance(k, Const) for k in receiver.keys.values())
            and name == "get"
        ):
            return given[1] if len(given) > 1 else Const(None)
        return run.opaque(f"{receiver.term}.get({given[0].term})")
    if name == "update" and given and isinstance(given[0], Table):
        receiver.items.update(given[0].items)
        receiver.keys.update(given[0].keys)
        return Const(None)
    if name == "clear":
        receiver.items.clear()
        receiver.keys.clear()
        return Const(None)
    return None


def _batch_method(run: Run, receiver: Buffer, name: str, arguments: Arguments) -> Value | None:
    """A batch treated as a dict or a list."""
    if name == "items":
        return Series(
            [Series([run.opaque(f"key{n}"), batches.leaf(receiver, f"[key{n}]")], kind="tuple") for n in range(run.rounds)], name="open"
        )
    if name == "values":
        return Series([batches.leaf(receiver, f"[key{n}]") for n in range(run.rounds)], name="open")
    if name == "keys":
        return Series([run.opaque(f"key{n}") for n in range(run.rounds)], name="open")
    if name in ("get", "pop") and arguments.positional:
        return batches.leaf(receiver, f"[{arguments.positional[0].term}]")
    return None
