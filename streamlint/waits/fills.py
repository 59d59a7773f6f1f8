"""What factories make on the host of nothing but sizes and numbers: the device could fill it itself, and draw what is drawn."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory, are_plain
from streamlint.facts.graph.call_graph import CallGraph, LibraryCall
from streamlint.findings.operations import DRAWN, FILLED
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row, first_part
from streamlint.waits.operands import argument_registers, first_given, operand_of

_ELSEWHERE = frozenset({"device", "generator", "pin_memory", "out", 2})
_READING = frozenset({op.ATTR, op.BINARY, op.COMPARE, op.UNARY, op.PHI, op.RETURN, op.BIND})


def how_filled(graph: CallGraph, function: Function, register: int, consumer: Instruction) -> str | None:
    """How factories have made on the host what an instruction takes from a register: DRAWN or FILLED; None where data is put into it."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or function.is_cpp or not is_only_read(graph, function, register, consumer):
        return None
    if one[0] in (op.BINARY, op.UNARY, op.BUILD):
        return _of_all(graph, function, one[4:], one)
    if one[0] not in (op.CALL, op.INVOKE):
        return None
    calls = graph.of_call(function, one).libraries
    is_one = len({call.name for call in calls}) == 1  # there is one for each value of the receiver
    return _by_call(graph, function, calls[0], calls[0].row) if is_one and calls[0].row is not None else None


def _of_all(graph: CallGraph, function: Function, registers: Sequence[int], consumer: Instruction) -> str | None:
    """How what an instruction computes of several registers was filled, if nothing else than numbers is among them."""
    kinds = [how_filled(graph, function, register, consumer) for register in registers]
    if any(kind is None and not _is_number(graph, function, register) for kind, register in zip(kinds, registers, strict=True)):
        return None
    return DRAWN if DRAWN in kinds else FILLED if FILLED in kinds else None


def _by_call(graph: CallGraph, function: Function, call: LibraryCall, row: Row) -> str | None:
    one, name = call.instruction, call.name.rpartition(".")[2]
    given = argument_registers(function, one)
    if first_part(call.name) not in function.unit.models.marked("computes-on-host") or any(kind in _ELSEWHERE for kind, _ in given):
        return None
    if row.effect == "factory":
        return _by_factory(graph, function, call, row) if _is_of_host(graph, function, one[2]) else None
    kind = _kind(row)
    source = one[3] if call.receiver is not None else first_given(given)
    if row.get("result") == "self":
        is_set = kind == DRAWN or name in function.known("fills")
        return kind if is_set and _is_new(graph, function, source, one) else None
    if name in function.known("of-one") or (call.receiver is not None and name in function.known("same-numbers")):
        inner = how_filled(graph, function, source, one)
        return kind if inner == FILLED else inner
    return _by_computation(graph, function, call, row)


def _by_computation(graph: CallGraph, function: Function, call: LibraryCall, row: Row) -> str | None:
    """How what a function of torch computes of all that it is given was filled."""
    one, kind, given = call.instruction, _kind(row), argument_registers(function, call.instruction)
    if call.name.rpartition(".")[2] == "normal" and all(_is_number(graph, function, register) for _, register in given[:2]):
        return kind
    if kind == DRAWN or not call.name.startswith("torch.") or not _is_pure(row):
        return None
    receiver = [one[3]] if call.receiver is not None else []
    return _of_all(graph, function, [*receiver, *(register for _, register in given)], one)


def _by_factory(graph: CallGraph, function: Function, call: LibraryCall, row: Row) -> str | None:
    """How a factory fills what it makes: of sizes and numbers alone, or as what it is given was filled."""
    one, given = call.instruction, argument_registers(function, call.instruction)
    if row.get("data") is None:
        is_filled = (call.name.startswith("numpy.") and bool(row.get("shape"))) or _is_of_sizes(row, len(given))
        return _kind(row) if is_filled else None
    data = first_given(given)
    return _kind(row) if is_repeated(graph, function, data, one) else how_filled(graph, function, data, one)


def _kind(row: Row) -> str:
    return DRAWN if row.get("random") else FILLED


def _is_pure(row: Row | None) -> bool:
    """Whether a call computes a new tensor of what it is given, and leaves that as it is."""
    return row is not None and row.effect == "compute" and row.get("result", "buffer") == "buffer"


def is_repeated(graph: CallGraph, function: Function, register: int, consumer: Instruction) -> bool:
    """Whether a register holds a list of numbers as often as a size says: ``[1.0] * len(x)``, which ``torch.full`` would fill."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] != op.BINARY or function.text(one[3]) != "*":
        return False
    built = function.definitions[one[4]]
    is_list = built is not None and built[0] == op.BUILD and all(_is_number(graph, function, part) for part in built[4:])
    is_kept = is_only_read(graph, function, one[4], one) and is_only_read(graph, function, register, consumer)
    return is_list and is_kept and is_size(function, function.definitions[one[5]])


def _is_of_sizes(row: Row, given: int) -> bool:
    """Whether a factory without data takes nothing but sizes and numbers: ``torch.FloatTensor(n, m)``, and no file or array."""
    return row.get("space") != "host" or (bool(row.get("shape")) and given > 1)


def _is_new(graph: CallGraph, function: Function, register: int, consumer: Instruction) -> bool:
    """Whether nothing but a factory's call has made what is overwritten: ``torch.FloatTensor(n).uniform_()``."""
    if how_filled(graph, function, register, consumer) is not None:
        return True
    one = function.definitions[register]
    calls = graph.of_call(function, one).libraries if one is not None and one[0] in (op.CALL, op.INVOKE) else ()
    is_made = any(call.row is not None and call.row.effect == "factory" and not call.row.get("alias") for call in calls)
    return is_made and _is_of_host(graph, function, register) and is_only_read(graph, function, register, consumer)


def _is_of_host(graph: CallGraph, function: Function, register: int) -> bool:
    values = [value for value in graph.facts.values(function, register).values if isinstance(value, Memory)]
    return bool(values) and all(value.space == "host" for value in values)


def hands_filled(graph: CallGraph, function: Function, parameter: Instruction, seen: frozenset[Function] = frozenset()) -> bool:
    """Whether a call in view hands over as a parameter what it has just filled on the host (``moved(torch.arange(n))``), or hands it on."""
    for _, arguments in graph.facts.callers(function) if function not in seen else ():
        site = arguments.site
        if site is None or site.instruction[0] not in (op.CALL, op.INVOKE):
            continue
        caller, given = site.function, operand_of(site.function, site.instruction, function, parameter[3])
        one = caller.definitions[given] if given is not None and given >= 0 else None
        if one is None or given is None:
            continue
        if how_filled(graph, caller, given, site.instruction) is not None:
            return True
        if one[0] == op.PARAM and hands_filled(graph, caller, one, seen | {function}):
            return True
    return False


def is_only_read(graph: CallGraph, function: Function, register: int, consumer: Instruction) -> bool:
    """Whether nothing but one instruction takes what a register holds anywhere that could write to it."""
    for one in function.uses[register]:
        is_given_back = one[0] == op.BUILD and function.kind_built(one) == "tuple"
        if one != consumer and one[0] not in _READING and not is_given_back and not _only_asks(graph, function, one, register):
            return False
    return True


def _only_asks(graph: CallGraph, function: Function, one: Instruction, register: int) -> bool:
    """Whether a call asks for a tensor's shape, or computes another one of it: ``angles.sin()``."""
    if one[0] == op.INVOKE and one[3] == register and function.text(one[4]) in function.known("moves", "size"):
        return True
    calls = graph.of_call(function, one).libraries if one[0] in (op.CALL, op.INVOKE) else ()
    return bool(calls) and all(_is_pure(call.row) and call.name.startswith("torch.") for call in calls)


def is_shape(graph: CallGraph, function: Function, names: Collection[str], given: Sequence[tuple[object, int]]) -> bool:
    """Whether a class of tensors is called with the shape of a new one, of no data: ``torch.cuda.FloatTensor(len(x), 1)``."""
    plain = [register for kind, register in given if kind is None]
    is_class = not function.unit.models.marked("tensor-class").isdisjoint(names)
    return is_class and (len(plain) > 1 or (len(plain) == 1 and _is_number(graph, function, plain[0])))


def is_size(function: Function, one: Instruction | None) -> bool:
    """Whether an instruction gives numbers of a tensor's shape or a container's length, or what is computed of them alone."""
    waiting, found = [one], False
    while waiting:
        one = waiting.pop()
        if one is None:
            return False
        if one[0] in (op.BINARY, op.BUILD):
            waiting += [function.definitions[register] for register in one[4:]]
        elif one[0] != op.CONST:
            if not _is_one_size(function, one):
                return False
            found = True
    return found


def _is_one_size(function: Function, one: Instruction) -> bool:
    if one[0] == op.INVOKE:
        return function.text(one[4]) in function.known("count") or (function.text(one[4]) == "size" and len(one) > 6)
    if one[0] == op.CALL:
        return function.dotted(one[3]) == "len"
    if one[0] == op.ITEM:
        held = function.definitions[one[3]]
        return held is not None and held[0] == op.ATTR and function.text(held[4]) == "shape"
    return False


def _is_number(graph: CallGraph, function: Function, register: int) -> bool:
    """Whether a register holds a constant, a size, what is known as a number, or an attribute that the class sets to nothing else."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] == op.CONST or is_size(function, one) or _is_of_shape(function, one):
        return one is not None
    if are_plain(graph.facts.values(function, register).values) or _is_given_as_size(graph, function, register):
        return True
    owner = function.method.owner if function.method is not None else None
    if one[0] != op.ATTR or owner is None or not function.is_parameter(one[3], 0):
        return False
    stores = owner.own_stores.get(function.text(one[4]), ())
    made = [(store.function, store.function.definitions[store.value]) for store in stores if store.value >= 0]
    return bool(stores) and all(
        value is not None and (value[0] == op.CONST or is_size(holder, value) or _is_of_shape(holder, value)) for holder, value in made
    )


def _is_given_as_size(graph: CallGraph, function: Function, register: int) -> bool:
    """Whether a function gives to a factory as a size what a register holds: ``torch.arange(half) / half``."""
    for one in function.uses[register]:
        calls = graph.of_call(function, one).libraries if one[0] in (op.CALL, op.INVOKE) and one[3] != register else ()
        if any(call.row is not None and call.row.effect == "factory" and call.row.get("data") is None for call in calls):
            return True
    return False


def _is_of_shape(function: Function, one: Instruction) -> bool:
    """``rows, columns = x.shape``."""
    held = function.definitions[one[3]] if one[0] == op.UNPACK else None
    return held is not None and held[0] in (op.ATTR, op.INVOKE) and function.text(held[4]) in ("shape", "size")
