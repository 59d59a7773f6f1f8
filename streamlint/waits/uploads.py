"""What is uploaded in each round though it need not be: constants, sizes, lists of tensors, what the host fills or draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Constant, Container, External, Instance, Memory, Object, Scalar, are_plain
from streamlint.facts.graph.call_graph import CallGraph, LibraryCall
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.findings.operations import DRAWN, FILLED
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.waits.fills import how_filled, is_only_read, is_repeated, is_shape, is_size
from streamlint.waits.indices import is_new_index
from streamlint.waits.operands import ahead, argument_registers, inputs_of, selectors
from streamlint.waits.origins import INPUT, TENSOR, UNSURE
from streamlint.waits.passed import passed
from streamlint.waits.steady import steadiness_of
from streamlint.waits.wait import Wait

_ARITHMETIC = frozenset({"int", "float", "abs", "round", "min", "max", "pow", "sum"})
_MADE_OF_PARTS = frozenset({op.UNARY, op.BINARY, op.BUILD, op.ITEM, op.UNPACK, op.SLICE, op.CALL, op.INVOKE})
_PURE = frozenset({"compute", "factory", "view"})
CONSTANT, SIZE_OF, TENSORS, INDEX = "a constant", "a size", "a list of tensors", "an index"


def upload_reason(hot: HotRegions, wait: Wait, region: Region, all_loops: bool) -> str | None:
    """What is uploaded needlessly; None where each round needs an upload of its own."""
    function, register = wait.function, wait.value
    one = function.definitions[register]
    if one is None:
        return None
    if wait.name == "indexing":
        return _index_reason(hot, wait, region)
    if wait.name.endswith((".to", ".cuda")) or (all_loops and wait.name.endswith(".type_as")):
        kind = _how_filled(hot, wait, region)
        if kind:
            return kind
        register = _numbers_of(hot, function, one)
        if register < 0:
            return CONSTANT if _is_kept_constant(hot, function, wait.value, region) else None
    if is_constant(hot, function, register, region):
        return CONSTANT
    if is_repeated(hot.graph, function, register, wait.instruction):
        return FILLED
    if _is_of_sizes(hot, function, register, region):
        return SIZE_OF
    return TENSORS if _are_tensors(hot, function, register, all_loops) else None


def is_changed(graph: CallGraph, function: Function, register: int) -> bool:
    """Whether a function changes a tensor in place, under whatever name: each round needs one of its own."""
    return any(
        (use[0] == op.INPLACE and use[4] == held) or (use[0] == op.SET_ITEM and use[2] == held) or _writes(graph, function, use, held)
        for held, use in ahead(function, register, (op.PHI, op.COPY))
    )


def _writes(graph: CallGraph, function: Function, use: Instruction, register: int) -> bool:
    """Whether a method changes its tensor: ``total.add_(x)``."""
    if use[0] != op.INVOKE or use[3] != register:
        return False
    rows = (call.row for call in graph.of_call(function, use).libraries)
    return any(row is not None and any(selector.kind == "self" for selector in selectors(row, "writes")) for row in rows)


def _is_of_sizes(hot: HotRegions, function: Function, register: int, region: Region) -> bool:
    """Whether a register holds a size, or is computed of one and of what is the same in each round."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or _is_filled(function, register):
        return False
    if one[0] not in (op.BINARY, op.BUILD):
        return is_size(function, one)
    sizes = [_is_of_sizes(hot, function, part, region) for part in one[4:]]
    return any(sizes) and all(known or is_constant(hot, function, part, region) for known, part in zip(sizes, one[4:], strict=True))


def _is_kept_constant(hot: HotRegions, function: Function, register: int, region: Region) -> bool:
    """Whether a tensor is one that only the constructor of an object sets, or was computed from such and from numbers alone: the device can
    keep it, and do the rest."""

    def given(one: Instruction) -> list[int]:
        return [each for each in inputs_of(function, one) if not _is_number(hot, function, each)]

    return all(_is_kept(hot, function, one, region) for one in behind(function, [register], given))


def _is_kept(hot: HotRegions, function: Function, one: Instruction, region: Region) -> bool:
    """Whether an instruction gives a tensor that only a constructor sets, or computes one of what it is given."""
    if one[0] == op.PARAM:
        found = passed(region, function, one[2]) if region.function is function else None
        return found is not None and _is_kept_constant(hot, found.function, found.register, found.region)
    if one[0] == op.ATTR:
        return region.function is function and _is_setting(hot, region, one)
    calls = hot.graph.of_call(function, one).libraries if one[0] in (op.CALL, op.INVOKE) else ()
    rows = [call.row for call in calls if call.row is not None and call.name.startswith("torch.")]
    return len(rows) == len(calls) > 0 and all(row.effect in ("compute", "view") and not row.get("random") for row in rows)


def _is_number(hot: HotRegions, function: Function, register: int) -> bool:
    """Whether a register holds a number, or the size of something."""
    return are_plain(hot.facts.values(function, register).values) or is_size(function, function.definitions[register])


def _how_filled(hot: HotRegions, wait: Wait, region: Region) -> str | None:
    """How what is uploaded was made of sizes and numbers: in the function, or where the round hands it to a helper that uploads it."""
    function, register, consumer = wait.function, wait.value, wait.instruction
    while (one := function.definitions[register]) is not None and one[0] == op.PARAM:
        given = passed(region, function, register) if is_only_read(hot.graph, function, register, consumer) else None
        if given is None or region.call is None:
            return None
        consumer = region.call
        function, register, region = given
    return how_filled(hot.graph, function, register, consumer)


def _index_reason(hot: HotRegions, wait: Wait, region: Region) -> str | None:
    """An index that is the same in each round, that the device can make, or that is uploaded once for each of several tensors."""
    function, register = wait.function, wait.value
    one = function.definitions[register]
    if one is not None and is_new_index(hot.facts, function, register):
        return DRAWN if how_filled(hot.graph, function, register, wait.instruction) == DRAWN else INDEX
    if not _is_filled(function, register) and is_constant(hot, function, register, region):
        return CONSTANT
    home = hot.body(function).home
    loops = [loop for loop in hot.body(function).graph.loops if home[wait.instruction] in loop.body]
    made = home[one] if one is not None else NOBODY
    return INDEX if any(made not in loop.body for loop in loops if loop is not region.loop) else None


def _is_filled(function: Function, register: int) -> bool:
    """Whether something is put into a list behind its display: ``[place for place in places if wanted]``."""
    return _put_into(function, register) != []


def _put_into(function: Function, register: int) -> list[int] | None:
    """What is put into a list behind its display, as in a comprehension; None where a method may put anything into it."""
    uses = function.uses[register]
    if any(one[0] == op.INVOKE and one[3] == register for one in uses):
        return None
    return [one[-1] for one in uses if one[0] in (op.APPEND, op.PUT, op.SET_ITEM) and one[2] == register]


def is_constant(hot: HotRegions, function: Function, register: int, region: Region) -> bool:
    """Whether a register holds the same number in each round: literals, what was there before the loop, settings of the object."""
    waiting, seen = [register], set[int]()
    while waiting:
        one = function.definitions[waiting.pop()]
        if one is None:
            return False
        if one[2] not in seen:
            seen.add(one[2])
            parts = _parts_of_constant(hot, function, one, region)
            if parts is None:
                return False
            waiting += parts
    return True


def _parts_of_constant(hot: HotRegions, function: Function, one: Instruction, region: Region) -> Sequence[int] | None:
    """The registers that have to hold the same number in each round for an instruction to give the same; None where it never does."""
    if one[0] in (op.CONST, op.UNDEF):
        return ()
    loop = region.loop if region.function is function else None
    home = hot.body(function).home[one]
    if loop is not None and home not in loop.body and one[0] not in (op.PHI, op.ATTR):
        return () if not steadiness_of(hot).is_refilled(region, one[2]) else None
    if one[0] == op.PHI:
        changes = loop is not None and home in loop.body and any(each.header == home for each in hot.body(function).graph.loops)
        return one[3:] if not changes else None
    if one[0] in _MADE_OF_PARTS:
        return _parts(hot, function, one, region)
    if one[0] == op.NAME:
        return _values_of_name(hot, one, region) if region.function is function else ()
    return () if _is_same_number(hot, function, one, region) else None


def _is_same_number(hot: HotRegions, function: Function, one: Instruction, region: Region) -> bool:
    """Whether an attribute or a parameter is the same number in each round."""
    if one[0] == op.ATTR:
        return _is_of_library(hot, function, one) or _is_setting(hot, region, one)
    return one[0] == op.PARAM and _is_given_constant(hot, region, function, one)


def _parts(hot: HotRegions, function: Function, one: Instruction, region: Region) -> Sequence[int] | None:
    """The parts of what an instruction computes, puts together or takes apart; None where a round may put others into it."""
    if one[0] in (op.CALL, op.INVOKE):
        return _computed_from(hot, function, one)
    if one[0] == op.ITEM:
        return one[3:5] if not steadiness_of(hot).is_refilled(region, one[3]) else None
    if one[0] in (op.UNPACK, op.SLICE):
        return op.reads(one) if not _is_filled(function, one[2]) else None
    put = _put_into(function, one[2]) if one[0] == op.BUILD else []
    return [*one[4:], *put] if put is not None else None


def _values_of_name(hot: HotRegions, one: Instruction, region: Region) -> list[int] | None:
    """The values that a round gives a global name; None where one of them is unknown."""
    set_to = steadiness_of(hot).set_to(region, one)
    known = [value for value in set_to if value is not None]
    return known if len(known) == len(set_to) else None


def _is_given_constant(hot: HotRegions, region: Region, function: Function, one: Instruction) -> bool:
    """Whether each round hands over the same number as a parameter."""
    if region.function is not function or region.caller is None or region.call is None:
        return False
    given = passed(region, function, one[2])
    if given is not None:
        return is_constant(hot, given.function, given.register, given.region)
    return any(kind == 2 for kind, _ in argument_registers(region.caller.function, region.call)) and steadiness_of(hot).of(region, one[2])


def _is_of_library(hot: HotRegions, function: Function, one: Instruction) -> bool:
    """``np.pi``."""
    values = hot.facts.values(function, one[2]).values
    return bool(values) and all(isinstance(value, External) and value.receiver is None for value in values)


def _computed_from(hot: HotRegions, function: Function, one: Instruction) -> list[int] | None:
    """What a number is computed from by the language, or a new array by NumPy, or a view of one, that nothing writes to; None for other
    calls."""
    calls = hot.graph.of_call(function, one).libraries
    if calls and all(_is_of_numbers(call.name) for call in calls) and one not in hot.graph.calls(function).unknown:
        return [register for _, register in argument_registers(function, one)]
    given = argument_registers(function, one)
    is_filled = any(use[0] in (op.SET_ITEM, op.INPLACE) and one[2] in use[2:4] for use in function.uses[one[2]])
    if not calls or not all(map(_is_pure, calls)) or is_filled or any(kind in (1, 2, "out") for kind, _ in given):
        return None
    receiver = [one[3]] if any(call.receiver is not None for call in calls) else []
    return [*receiver, *(register for kind, register in given if kind != "dtype")]


def _is_pure(call: LibraryCall) -> bool:
    """Whether a function of NumPy computes an array of what it is given alone."""
    is_of_numpy = call.name.startswith("numpy.") and ".random." not in call.name
    return is_of_numpy and call.row is not None and call.row.effect in _PURE and not call.row.get("random")


def _is_of_numbers(name: str) -> bool:
    """Whether a function makes numbers of nothing but numbers."""
    return name.removeprefix("builtins.") in _ARITHMETIC or name.startswith("math.")


def _is_setting(hot: HotRegions, region: Region, one: Instruction) -> bool:
    """Whether an attribute of an object of the program, which only constructors give a value, or of a parameter, is the same in each
    round, and so is the object."""
    function, steady = region.function, steadiness_of(hot)
    values = [value for value in hot.facts.values(function, one[3]).values if isinstance(value, Instance)]
    stores = [store for value in values for store in hot.facts.hierarchy.stores(value.definition, function.text(one[4]))]
    held = function.definitions[one[3]]
    is_given = function.is_parameter(one[3]) or (held is not None and held[0] == op.PARAM)
    if (not values and not is_given) or any(store.function.code.name != "__init__" for store in stores):
        return False
    return not steady.is_filled(function, one) and steady.of(region, one[2])


def _numbers_of(hot: HotRegions, function: Function, one: Instruction) -> int:
    """What ``torch.tensor(…)`` makes a tensor of, whatever shape it is given then; none for other calls."""
    while (
        one[0] == op.INVOKE
        and function.text(one[4]) in function.known("same-numbers")
        and (inner := function.definitions[one[3]]) is not None
    ):
        one = inner
    given = argument_registers(function, one) if one[0] in (op.CALL, op.INVOKE) else []
    models = function.unit.models
    names = {getattr(value, "name", "") for value in hot.facts.callees(function, one)} if given else set()
    if not given or given[0][0] is not None or names.isdisjoint(models.marked("tensor-class") | models.marked("uploads")):
        return op.NONE
    return op.NONE if is_shape(hot.graph, function, names, given) else given[0][1]


def _are_tensors(hot: HotRegions, function: Function, register: int, all_loops: bool) -> bool:
    """Whether a list holds nothing but tensors; without all loops, of a device: each of them is read for itself."""
    one = function.definitions[register]
    if one is not None and one[0] == op.BINARY and function.text(one[3]) == "*":
        register = one[4]
    lists = [value for value in hot.facts.values(function, register).values if isinstance(value, Container)]
    held = [part for value in lists for part in hot.facts.elements(value)]
    if not any(_is_tensor(part, all_loops) for part in held):
        return False
    if not any(isinstance(part, (Constant, Scalar)) for part in held):
        return True
    return all_loops and any(_is_surely_tensor(hot, function, each, set()) for each in _elements(function, register))


def _elements(function: Function, register: int) -> Iterator[int]:
    """The registers that a function puts into a list."""
    one = function.definitions[register]
    yield from one[4:] if one is not None and one[0] == op.BUILD else ()
    for use in function.uses[register]:
        if use[0] in (op.APPEND, op.PUT) and use[2] == register:
            yield use[-1]
        elif use[0] == op.INVOKE and use[3] == register and function.text(use[4]) == "append":
            yield from use[6:]


def _is_surely_tensor(hot: HotRegions, function: Function, register: int, seen: set[int]) -> bool:
    """Whether a register holds a tensor, whichever way is taken: arithmetic of a tensor and a number gives one."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or register in seen:
        return one is not None
    seen.add(register)
    if one[0] in (op.BINARY, op.INPLACE):
        return any(_is_surely_tensor(hot, function, each, set(seen)) for each in one[4:6])
    if one[0] == op.PHI:
        return all(_is_surely_tensor(hot, function, each, seen) for each in one[3:])
    values = hot.facts.values(function, register).values
    return bool(values) and all(isinstance(value, Memory) and value.type == TENSOR for value in values)


def _is_tensor(value: Object, all_loops: bool) -> bool:
    if not isinstance(value, Memory) or value.evidence == f"{UNSURE}{INPUT}":
        return False
    return all_loops or (value.space == "device" and value.type == TENSOR and not value.evidence.startswith(UNSURE))
