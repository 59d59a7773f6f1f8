"""Waits that have another form, whatever their value is used for: a test that limits its tensor, a number that was there before the loop.

``clamp`` needs no test, ``a / n.clamp(min=1)`` no guard, and what a loop goes through could be fetched in one go before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, unnegated
from streamlint.facts.code.objects import Memory
from streamlint.facts.graph.aliases import path_of
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.facts.repetition.loops import Body
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.waits.arms import between, straight_way
from streamlint.waits.operands import argument_registers
from streamlint.waits.origins import UNSURE
from streamlint.waits.passed import passed
from streamlint.waits.questions import alike, parts_of
from streamlint.waits.sinks import called_name, is_float_type, is_said
from streamlint.waits.steady import steadiness_of
from streamlint.waits.wait import Wait

_PLAIN = frozenset(
    {op.CONST, op.NAME, op.LOAD, op.ATTR, op.BINARY, op.UNARY, op.COMPARE, op.BUILD, op.ITEM, op.JUMP, op.BIND, op.UNBIND, op.UNDEF}
)
_CHOOSING = _PLAIN | {op.BRANCH, op.PHI}
_CALLS = frozenset({op.CALL, op.INVOKE})
_OF_TWO = (op.BINARY, op.INPLACE)
_Placed = tuple[Function, int, Region | None]
_READ = frozenset({op.CONST, op.NAME, op.LOAD, op.ATTR})
_HANDED_ON = frozenset({op.UNARY, op.BINARY, op.ITEM, op.UNPACK, op.BUILD, op.COPY, op.CAST, op.SLICE})


def has_device_form(body: Body, wait: Wait, says: bool) -> bool:
    """A test that only guards a division (``clamp(min=1)`` does), or that only limits the tensor that it asks (``clamp_``).

    ``says``: it may print that it did so.
    """
    function = wait.function
    for compared, branch in _tests(function, wait):
        block = body.home[branch]
        register, turned = unnegated(function, branch[2])
        if register != compared[2] or not _is_literal(function, compared[5]):
            continue
        taken, other = (branch[4], branch[3]) if turned else (branch[3], branch[4])
        if _divides(body, block, taken, compared[4]) or (_is_choice(body, taken, other) and _divides(body, block, other, compared[4])):
            return True
        if _only_chooses(body, block, compared[4]):
            return True
        asked = _asked(wait) if compared[4] == wait.instruction[2] else op.NONE
        if asked < 0:
            continue
        if _only_limits(body, block, other, asked, says):
            if _is_choice(body, taken, other) and len(function.code.blocks[taken]) == 1:  # ``x if x > 0 else 0``
                return True
        elif _only_limits(body, block, taken, asked, says):
            return True
    return False


def _tests(function: Function, wait: Wait) -> Iterator[tuple[Instruction, Instruction]]:
    """The comparisons of the value that a wait fetches, each with a branch on it."""
    one = wait.instruction
    if one[0] == op.BRANCH:
        compared = function.definitions[unnegated(function, one[2])[0]]
        if compared is not None and compared[0] == op.COMPARE:
            yield compared, one
        return
    for compared in function.by_opcode[op.COMPARE] if op.DEFINES[one[0]] else ():
        if any(part == one for part in parts_of(function, [compared[4]])):
            yield from ((compared, branch) for branch in function.by_opcode[op.BRANCH] if unnegated(function, branch[2])[0] == compared[2])


def _is_literal(function: Function, register: int) -> bool:
    one = function.definitions[register]
    if one is not None and one[0] == op.UNARY:
        one = function.definitions[one[4]]
    return one is not None and one[0] == op.CONST


def _divides(body: Body, block: int, edge: int, divisor: int) -> bool:
    """Whether something is divided, where only this edge leads to, by what was tested, or by what is computed of that and constants."""
    if body.graph.predecessors[edge] != [block]:
        return False
    function = body.function
    tested = alike(function, divisor)
    for one in function.by_opcode[op.BINARY]:
        is_there = function.text(one[3]) == "/" and body.graph.dominates(edge, body.home[one])
        if is_there and any(alike(function, part[2]) == tested for part in behind(function, [one[5]], partial(_of_one, function))):
            return True
    return False


def _of_one(function: Function, one: Instruction) -> Iterable[int]:
    """What decides alone whether the result of an instruction is 0: no term of a sum beside others."""
    if one[0] != op.BINARY or function.text(one[3]) not in ("+", "-"):
        return op.reads(one) if one[0] != op.PHI else ()
    sides = [side for side in one[4:6] if not _is_literal(function, side)]
    return sides if len(sides) == 1 else ()


def _is_choice(body: Body, *edges: int) -> bool:
    """Whether both ways of a test meet at once: ``0.0 if count == 0 else total / count``."""
    ends = {body.function.code.blocks[edge][-1][::2] for edge in edges}  # without their places
    headers = {loop.header for loop in body.graph.loops}
    return len(ends) == 1 and all(end[0] == op.JUMP and end[1] not in headers for end in ends)


def _only_chooses(body: Body, block: int, tested: int) -> bool:
    """Whether all that hangs on a test is which value a variable has, one computed from what was tested: ``torch.where`` does that."""
    function, graph = body.function, body.graph
    inside = between(graph, block)
    if inside is None or any(one[0] not in _CHOOSING for number in inside for one in function.code.blocks[number]):
        return False
    merged = [register for one in function.code.blocks[graph.post_dominators[block]] if one[0] == op.PHI for register in one[3:]]
    computed = [one for register in merged if (one := function.definitions[register]) is not None and body.home[one] in inside]
    return any(tested in op.reads(one) for one in computed if one[0] == op.BINARY)


def _asked(wait: Wait) -> int:
    """The tensor of ``x.item()``, ``float(x)``; NONE for anything else."""
    return wait.value if wait.name.rpartition(".")[2] in ("item", "float") else op.NONE


def _only_limits(body: Body, block: int, edge: int, asked: int, says: bool) -> bool:
    """Whether all that the way from an edge to where both ways meet does is to give the tensor a value."""
    function, join = body.function, body.graph.post_dominators[block]
    if (inside := straight_way(body, block, edge)) is None:
        return False
    limits = False
    for one in (one for number in inside for one in function.code.blocks[number]):
        if _gives(function, one, asked):
            limits = True
        elif one[0] in (op.CALL, op.INVOKE):
            if not function.uses[one[2]] and not (says and is_said(function, called_name(function, one))):
                return False
        elif one[0] not in _PLAIN:
            return False
    return limits or _is_merged(function, inside, join, asked)


def _gives(function: Function, one: Instruction, asked: int) -> bool:
    """Whether an instruction gives the tensor that was asked a value: it, or its ``data``."""
    tensor, source = alike(function, asked), function.definitions[asked]
    if one[0] == op.SET_ATTR:
        is_itself = source is not None and source[0] == op.ATTR and function.text(source[4]) == function.text(one[3])
        if is_itself and source is not None and alike(function, source[3]) == alike(function, one[2]):
            return True
        return function.text(one[3]) == "data" and alike(function, one[2]) == tensor
    if one[0] in (op.STORE, op.SET_NAME):
        read = op.LOAD if one[0] == op.STORE else op.NAME
        constants = function.unit.ir.constants
        return source is not None and source[0] == read and constants[source[3]] == constants[one[2]]
    if one[0] != op.INVOKE or not function.text(one[4]).endswith("_"):
        return False
    held = function.definitions[one[3]]
    is_data = held is not None and held[0] == op.ATTR and function.text(held[4]) == "data"
    return alike(function, held[3] if is_data and held is not None else one[3]) == tensor


def _is_merged(function: Function, inside: list[int], join: int, asked: int) -> bool:
    """Whether a local that held the tensor holds another one behind these blocks."""
    before = function.phi_order[join]
    for one in function.code.blocks[join]:
        if one[0] == op.PHI and asked in one[3:]:
            ours = [register for block, register in zip(before, one[3:], strict=False) if block in inside]
            if ours and asked not in ours:
                return True
    return False


def scales_gradient(wait: Wait) -> bool:
    """Whether the ``backward`` of a function reads a multiple of the gradient that it is given: what it gives back is linear in that, so
    that the device can multiply, and nothing has to be left out for a factor of one."""
    function = wait.function
    if function.code.name != "backward" or not function.is_static or function.owner is None:
        return False

    def onward(one: Instruction) -> Iterable[int]:
        if one[0] in (op.BINARY, op.UNARY, op.COMPARE, op.PHI):
            return op.reads(one)
        return one[3:4] if one[0] == op.ITEM or (function.invokes(one, "same-numbers", "number")) else ()

    return any(one[0] == op.PARAM and one[3] > 0 for one in behind(function, [wait.value], onward))


def joins_tests(function: Function, wait: Wait) -> bool:
    """``f(a > 0 and b > 0)``: of tensors ``&`` does the same on the device."""
    one = wait.instruction
    compared = function.definitions[one[2]] if one[0] == op.BRANCH else None
    if compared is None or compared[0] != op.COMPARE:
        return False
    joined = [use for use in function.uses[one[2]] if use[0] == op.PHI]
    uses = [use for phi in joined for use in function.uses[phi[2]]]
    return bool(uses) and all(use[0] in (op.CALL, op.INVOKE) for use in uses)


def stops_loop(hot: HotRegions, wait: Wait, region: Region) -> bool:
    """A test of a value that the code puts on the device itself ends the loop: it could be made less often."""
    if region.loop is None or region.caller is not None:
        return False
    function = wait.function
    values = [value for value in hot.facts.values(function, wait.value).values if isinstance(value, Memory)]
    if not any(value.space == "device" and value.evidence.removeprefix(UNSURE) == "literal" for value in values):
        return False
    home = hot.body(function).home
    for branch in function.by_opcode[op.BRANCH]:
        ends = home[branch] in region.loop.body and any(after not in region.loop.body for after in branch[3:5])
        if ends and (branch == wait.instruction or any(part == wait.instruction for part in parts_of(function, [branch[2]]))):
            return True
    return False


# --- what was there before the loop

_READ_AGAIN = (op.ATTR, op.NAME, op.LOAD)
"""Opcodes that read a variable or an attribute anew."""


def is_known_before(hot: HotRegions, wait: Wait, region: Region) -> bool:
    """Whether the number that is fetched comes from what the loop goes through or what was there before, and from nothing that changes."""
    if region.loop is None or region.caller is not None or wait.instruction[0] not in (op.CALL, op.INVOKE, op.BRANCH):
        return False
    tested = wait.function.definitions[wait.value]
    if wait.instruction[0] == op.BRANCH and (tested is None or tested[0] != op.COMPARE):
        return False  # whether there is anything at all: `if meters:`
    body = hot.body(wait.function)
    element = _element(body, region.loop)
    if element is not None and _rests_on(body, wait.value, region.loop, element, wait.function.known("same-numbers", "number")) is not None:
        return True
    if _rests_on(body, wait.value, region.loop, element, wait.function.known("same-numbers", "number", "pure")) is not False:
        return False
    sources = list(_sources(body, wait.value, region.loop))
    if any(_may_change(body.function, one, region.loop) for one in sources):
        return False
    made = (body.function.definitions[one] for one in sources)
    return not any(one is not None and one[0] == op.ATTR and steadiness_of(hot).is_changed(body.function, one) for one in made)


def _sources(body: Body, register: int, loop: Loop) -> Iterator[int]:
    """The registers that a value of a loop is made of: those from before the loop, and whatever in it is read by the same path."""
    function = body.function
    waiting, seen = [register], set[int]()
    while waiting:
        register = waiting.pop()
        one = function.definitions[register] if register >= 0 and register not in seen else None
        seen.add(register)
        if one is None or body.home[one] not in loop.body:
            yield from [register] if one is not None else []
            continue
        waiting += op.reads(one)
        if one[0] in _READ_AGAIN and (path := path_of(function, register)):
            reads = (other for opcode in _READ_AGAIN for other in function.by_opcode[opcode] if body.home.get(other) in loop.body)
            yield from (other[2] for other in reads if path_of(function, other[2]) == path)


def _may_change(function: Function, register: int, loop: Loop) -> bool:
    """Whether a loop may write into what a register holds: by a method, an element, or a call that gives nothing anybody uses."""
    for use in function.uses[register]:
        if function.blocks[use] not in loop.body:
            continue
        if use[0] == op.INVOKE and use[3] == register and function.text(use[4]).endswith("_"):
            return True
        if use[0] in (op.SET_ITEM, op.INPLACE) or (use[0] in _CALLS and not function.uses[use[2]]):
            return True
    return False


def one_of_each(body: Body, wait: Wait) -> bool:
    """Whether each pass of an inner loop fetches a number that no pass before it makes: one list would do for all."""
    index = body.graph.innermost[body.home[wait.instruction]]
    if index == NOBODY:
        return False
    loop = body.graph.loops[index]
    element = _element(body, loop)
    is_comprehension = any(one[0] in (op.APPEND, op.PUT) for block in loop.body for one in body.function.code.blocks[block])
    if element is None or is_comprehension:
        return False
    return bool(_rests_on(body, wait.value, loop, element, None))


def _element(body: Body, loop: Loop) -> Instruction | None:
    """The instruction that takes the next element of what a loop goes through."""
    more = next((one for one in body.function.code.blocks[loop.header] if one[0] == op.MORE), None)
    if more is None:
        return None
    return next((one for one in body.function.by_opcode[op.NEXT] if one[3] == more[3] and body.home[one] in loop.body), None)


def _rests_on(body: Body, register: int, loop: Loop, element: Instruction | None, methods: Iterable[str] | None) -> bool | None:
    """Whether a value is made of the element of a loop; None where it is made of something else that the loop changes.

    ``methods``: those that may make it; None for all but the object's own.
    """
    function = body.function
    changed = _changed(body, loop)
    found = False
    waiting, seen = [register], set()
    while waiting:
        one = function.definitions[waiting.pop()]
        if one is None:
            return None
        if one[2] in seen or (body.home[one] not in loop.body and path_of(function, one[2]) not in changed):
            continue
        seen.add(one[2])
        if one == element:
            found = True
            continue
        is_changed = path_of(function, one[2]) in changed if one[0] in _READ else one[0] == op.PHI and body.home[one] == loop.header
        parts = _made_of(function, one, methods) if not is_changed else None
        if parts is None:
            return None
        waiting += parts
    return found


def _made_of(function: Function, one: Instruction, methods: Iterable[str] | None) -> Sequence[int] | None:
    """The registers that the value of an instruction rests on; None where it rests on more than those."""
    if one[0] == op.PHI:
        return one[3:]
    if one[0] in _READ:
        return one[3:4] if one[0] == op.ATTR and function.text(one[4]) not in function.known("of-form") else ()
    if one[0] in (op.CALL, op.INVOKE):
        return op.reads(one) if _may_make(function, one, methods) else None
    is_forwarded = one[0] in _HANDED_ON or one[0] == op.COMPARE or (one[0] in (op.NEXT, op.ITER) and methods is None)
    return op.reads(one) if is_forwarded else None


def _may_make(function: Function, one: Instruction, methods: Iterable[str] | None) -> bool:
    if methods is not None:
        return one[0] == op.INVOKE and function.text(one[4]) in methods
    called = function.definitions[one[3]]
    if one[0] == op.INVOKE:
        return not function.is_parameter(one[3]) or function.method is None
    return called is not None and called[0] == op.NAME


def _changed(body: Body, loop: Loop) -> frozenset[str]:
    """The paths that a loop gives values."""
    function = body.function
    found = set()
    for one in (one for block in loop.body for one in function.code.blocks[block]):
        if one[0] == op.SET_ATTR:
            found.add(f"{path_of(function, one[2])}.{function.text(one[3])}")
        elif one[0] == op.SET_NAME:
            found.add(function.text(one[2]))
        elif one[0] == op.STORE:
            found.add(str(function.unit.ir.constants[one[2]][0]))
    return frozenset(found - {""})


# --- what kind of number


def is_fraction(function: Function, register: int, region: Region | None) -> bool:
    """Whether a value cannot be a size: a mean, a loss, a quotient."""
    waiting: list[_Placed] = [(function, register, region)]
    seen = set()
    while waiting:
        place = waiting.pop()
        function, register, region = place
        one = function.definitions[register] if register >= 0 else None
        if one is None or place[:2] in seen:
            continue
        seen.add(place[:2])
        found = _kind_from(function, one, region)
        if found is None:
            return True
        waiting += found
    return False


def _kind_from(function: Function, one: Instruction, region: Region | None) -> list[_Placed] | None:
    """The places of values whose kind an instruction's result has; None where that is a fraction itself."""
    if isinstance(_constant(function, one[2]), float) or (one[0] in _OF_TWO and function.text(one[3]) in ("/", "/=")):
        return None
    if one[0] == op.PARAM and region is not None and region.caller is not None:
        given = passed(region, function, one[2])
        return [given] if given is not None else []
    if one[0] in _OF_TWO or one[0] in (op.PHI, op.UNARY, op.COPY, op.CAST):
        return [(function, part, region) for part in op.reads(one)]
    if one[0] == op.ATTR and function.text(one[4]) in function.known("same-kind"):
        return [(function, one[3], region)]
    answer = _gives_fraction(function, one) if one[0] in _CALLS else None
    if answer is True:
        return None
    return [(function, answer, region)] if answer is not None else []


def _gives_fraction(function: Function, one: Instruction) -> int | bool | None:
    """True where a call gives one; else the register whose kind its result has, if any."""
    name, given = called_name(function, one), argument_registers(function, one)
    types = [register for kind, register in given if kind == "dtype"]
    if types:
        return True if any(is_float_type(function, register) for register in types) else None
    has_fraction = any(isinstance(_constant(function, register), float) for _, register in given)
    if name in function.known("fraction") or (name.startswith("clamp") and has_fraction):
        return True
    if one[0] == op.INVOKE and not _is_module(function, one[3]):
        return one[3] if name in function.known("same-kind") else _is_inherited(function, one[3], name) or None
    return given[0][1] if given else None


def _constant(function: Function, register: int) -> object:
    one = function.definitions[register]
    return function.unit.ir.constants[one[3]] if one is not None and one[0] == op.CONST else None


def _is_module(function: Function, register: int) -> bool:
    """Whether a name is that of a module: ``torch``, ``torch.nn.functional``."""
    one = function.definitions[register]
    while one is not None and one[0] == op.ATTR:
        one = function.definitions[one[3]]
    return one is not None and one[0] == op.NAME


def _is_inherited(function: Function, receiver: int, name: str) -> bool:
    """Whether a method of a class of the program calls one of the same object that a base class defines."""
    owner = function.method.owner if function.method is not None else None
    return function.is_parameter(receiver) and owner is not None and name not in owner.methods
