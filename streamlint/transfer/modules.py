"""Modules: calls that work with the weights of an object, and moves of those to a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.call_graph import LibraryCall
from streamlint.facts.functions import Function
from streamlint.facts.objects import LibraryObject, Memory, Object
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import CURRENT, Stream
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.work import Weights, Worked


def called(function: Function, one: Instruction, libraries: Iterable[LibraryCall], values: Iterable[Object]) -> Worked:
    """A call out of view: it works on what it is given, on the current stream. A module does so with its weights, and gives new memory.

    ``values`` is what the register of a called value may hold: only modules can be moved to a device and called.
    """
    held = Weights(one[3], function.text(one[4]) if one[0] == op.INVOKE else "")
    is_module = any(_is_called_module(each) for each in libraries)
    if one[0] == op.CALL and not is_module:
        is_module = any(isinstance(value, Memory) and value.space == "device" for value in values)
    if is_module:
        given = operands_of(function, one, False)
        return Worked(Stream(CURRENT, library="torch"), given, (), "module", "torch", one[2], runs=(held,))
    return Worked(Stream(CURRENT), operands_of(function, one), (), "call", "", op.NONE, True, runs=(held,))


def moved(calls: Iterable[ModelledCall]) -> Iterator[Worked]:
    """``module.to("cuda", non_blocking=True)``. Of what nobody knows the result tells: a tensor is moved for its sake, a module itself."""
    for call in calls:
        row, of = call.row, call.one("of", call.receiver)
        is_dropped = row.effect == "transfer" and row.library == "torch" and not call.function.uses.get(call.result)
        if of is None or row.get("to") == "host" or not (row.effect == "module_to" or (is_dropped and not call.memory(of))):
            continue
        _, asynchronous = call.switch("asynchronous")
        yield Worked(Stream(CURRENT, library="torch"), (), (), call.name, "torch", moves=(of,), waits=asynchronous is False)


def _is_called_module(call: LibraryCall) -> bool:
    return isinstance(call.receiver, LibraryObject) and call.receiver.kind == "module" and call.name.endswith((".__call__", ".forward"))
