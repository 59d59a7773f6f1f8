"""Training: backward passes, which leave gradients in the parameters of modules, and the work that reads these."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.repetition.rounds import Round, Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import CURRENT, Stream
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.work import Weights, Worked
from streamlint.waits.operands import argument_registers

Works = Callable[[Function, Instruction], tuple[Worked, ...]]
_DEEPEST = 12
_TAKING = frozenset({op.BINARY, op.UNARY, op.ITEM, op.UNPACK, op.COPY, op.PHI, op.BUILD, op.ATTR, op.INPLACE})


def trained(rounds: Rounds, works: Works, function: Function, one: Instruction, calls: list[ModelledCall]) -> Iterator[Worked]:
    """The work of a backward pass, of a step, and of what else looks at gradients, beside that of its row."""
    if one[0] not in (op.CALL, op.INVOKE) or function.is_cpp:
        return
    stream = Stream(CURRENT, library="torch")
    found = _round(rounds, function, one)
    if found is not None and found.row.does == "backward":
        loss = _subject(function, one, found, "Tensor.backward")
        modules = tuple(dict.fromkeys(_behind(works, function, loss, _DEEPEST))) if loss is not None else ()
        yield Worked(stream, (), (), found.name, "torch", leaves=modules)
    elif found is not None and found.row.does == "optimizer":
        scaled = _first(function, one) if _scales(found) else None
        optimizer = scaled if scaled is not None else _subject(function, one, found, "step")
        if optimizer is not None:
            yield Worked(stream, (), (), found.name, "torch", steps=(optimizer,))
    else:
        for call in calls:
            if call.row.get("gradients") and call.row.get("updates") is None:
                clipped = call.all("reads") or list(call.operands)[:1]
                yield Worked(stream, (), (), call.name, "torch", clips=tuple(clipped))


def _round(rounds: Rounds, function: Function, one: Instruction) -> Round | None:
    if one[0] == op.INVOKE and function.text(one[4]) not in rounds.names:
        return None
    if one[0] == op.CALL and function.dotted(one[3]).rpartition(".")[2] not in rounds.names:
        return None
    return next((each for each in rounds.of(function) if each.instruction is one or each.instruction == one), None)


def _scales(found: Round) -> bool:
    """Whether a step is that of a scaler, which is given the optimizer."""
    return any("GradScaler" in name for name in found.row.names)


def _subject(function: Function, one: Instruction, found: Round, method: str) -> int | None:
    """The loss, or the optimizer: the first argument, or the receiver of a method."""
    given = _first(function, one)
    if one[0] == op.INVOKE and (given is None or found.name.endswith(method) or "." not in found.name):
        return one[3]
    return given


def _first(function: Function, one: Instruction) -> int | None:
    return next((register for kind, register in argument_registers(function, one) if kind is None and register >= 0), None)


def _behind(works: Works, function: Function, register: int, depth: int) -> Iterator[Weights]:
    """The modules that have computed a value."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or depth == 0:
        return
    if one[0] in (op.CALL, op.INVOKE):
        for work in works(function, one):
            yield from work.runs
        given = [each for _, each in argument_registers(function, one)]
        for each in (*given, *((one[3],) if one[0] == op.INVOKE else ())):
            yield from _behind(works, function, each, depth - 1)
    elif one[0] in _TAKING:
        for each in (*op.reads(one), *(_stored(function, one) if one[0] == op.ATTR else ())):
            yield from _behind(works, function, each, depth - 1)


def _stored(function: Function, one: Instruction) -> Iterator[int]:
    """What a function has put into an attribute before it reads that."""
    for store in function.by_opcode[op.SET_ATTR]:
        if store[2] == one[3] and function.text(store[3]) == function.text(one[4]) and function.runs_before(store, one):
            yield store[4]
