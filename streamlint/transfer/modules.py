"""Modules: calls that work with the weights of an object, and moves of those to a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import CURRENT, Copied, Stream
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.work import Weights, Worked

Modelled = Callable[[Function, Instruction], Iterator[ModelledCall]]
"""The calls of libraries that an instruction makes."""


def called(function: Function, one: Instruction, libraries: Iterable[LibraryCall], modelled: Modelled) -> Worked:
    """A call out of view: it works on what it is given, on the current stream. A module does so with its weights, and gives new memory."""
    if one[0] not in (op.CALL, op.INVOKE):
        return Worked(Stream(CURRENT), operands_of(function, one), (), "call", "", op.NONE, True)
    held = Weights(one[3], function.text(one[4]) if one[0] == op.INVOKE else "")
    if any(_is_called_module(each) for each in libraries) or _is_module(function, held, modelled):
        given = operands_of(function, one, False)
        return Worked(Stream(CURRENT, library="torch"), given, (), "module", "torch", one[2], runs=(held,))
    return Worked(Stream(CURRENT), operands_of(function, one), (), "call", "", op.NONE, True, runs=(held,))


def _is_module(function: Function, held: Weights, modelled: Modelled, depth: int = 4) -> bool:
    """Whether a value was made as a module, or moved to a device before: if it is called, it is one."""
    owner = function.method.owner if function.method is not None else None
    if held.name:
        stores = owner.own_stores.get(held.name, ()) if owner is not None and _is_own_object(function, held.register) else ()
        return any(_is_module(store.function, Weights(store.value), modelled, depth - 1) for store in stores)
    one = function.definitions[held.register] if held.register >= 0 else None
    if one is None or depth == 0 or function.is_cpp:
        return False
    if one[0] == op.ATTR:
        return _is_module(function, Weights(one[3], function.text(one[4])), modelled, depth)
    if one[0] == op.UNPACK:
        built = function.definitions[one[3]]
        is_built = built is not None and built[0] == op.BUILD and one[6] == op.NONE and one[4] + 4 < len(built)
        return built is not None and is_built and _is_module(function, Weights(built[4 + one[4]]), modelled, depth - 1)
    return any(map(_gives_module, modelled(function, one))) if one[0] in (op.CALL, op.INVOKE) else False


def _gives_module(call: ModelledCall) -> bool:
    """Whether a call makes a module, or moves what may be one to a device."""
    row = call.row
    if row.effect == "object":
        kind = call.facts.models.type_named(call.text("type"))
        return kind is not None and kind.kind == "module"
    is_move = row.effect in ("module_to", "transfer") and call.instruction[0] == op.INVOKE
    return is_move and (row.get("to") == "device" or call.device_spaces() == {"device"})


def _is_own_object(function: Function, register: int) -> bool:
    """Whether a register holds the object whose method it is."""
    one = function.definitions[register] if register >= 0 else None
    return function.method is function and one is not None and one[0] == op.PARAM and one[3] == 0


def moved(calls: Iterable[ModelledCall]) -> Iterator[Worked]:
    """``module.to("cuda", non_blocking=True)``. Of what nobody knows the result tells: a tensor is moved for its sake, a module itself."""
    for call in calls:
        row, of = call.row, call.one("of", call.receiver)
        if of is None or call.instruction[0] != op.INVOKE or row.get("to") == "host":
            continue
        is_dropped = row.effect == "transfer" and row.library == "torch" and not call.function.uses.get(call.result)
        if row.effect != "module_to" and (not is_dropped or call.memory(of)):
            continue
        _, asynchronous = call.switch("asynchronous")
        yield Worked(Stream(CURRENT, library="torch"), (), (), call.name, "torch", moves=(of,), waits=asynchronous is False)


def fetched(calls: Iterable[ModelledCall]) -> Iterator[tuple[ModelledCall, Copied]]:
    """``module.to("cpu", non_blocking=True)``: copies that the host does not wait for, into the parameters of the module itself."""
    for call in calls:
        row, of = call.row, call.one("of", call.receiver)
        to_host = row.get("to") == "host" or (row.get("to") == "argument" and call.device_spaces() == {"host"})
        is_dropped = row.effect == "transfer" and row.library == "torch" and not call.function.uses.get(call.result)
        if of is None or call.instruction[0] != op.INVOKE or not to_host or call.switch("asynchronous")[1] is not True:
            continue
        if row.effect == "module_to" or (is_dropped and not call.memory(of)):
            for target in (of, call.result):
                yield call, Copied(target, of, Stream(CURRENT, library="torch"), True, op.NONE, "d2h", call.call)


def _is_called_module(call: LibraryCall) -> bool:
    return isinstance(call.receiver, LibraryObject) and call.receiver.kind == "module" and call.name.endswith((".__call__", ".forward"))
