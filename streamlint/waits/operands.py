"""The operands of call instructions: which register is which argument of a function, of a library or of the program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import takewhile

from streamlint.facts.code.functions import Function
from streamlint.facts.code.handing import Called, receiver_of
from streamlint.facts.code.instructions import DICT, LIST, arguments_of, behind, last_name
from streamlint.facts.code.objects import Constant, CppName, DeviceValue, External, Memory
from streamlint.facts.files.autograd import offset_of
from streamlint.facts.graph.facts import Facts
from streamlint.facts.values.members import ELEMENT_TYPE
from streamlint.facts.values.operators import OF_FUNCTIONS
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.models.traits import Trait
from streamlint.models.vocabulary import Selector

OnDevice = Callable[[int], bool]
Given = tuple[object, int]
"""An argument: its keyword, 1 or 2 where it is spread (``*``, ``**``), None by position; and its register."""


_SIZES: tuple[Trait, ...] = ("bytes-1", "bytes-2", "bytes-4", "bytes-8")
"""What types of elements are known by."""
_GIVING = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW, op.LAUNCH})
"""Instructions that are written with arguments."""


def ahead(function: Function, register: int, onward: Collection[int]) -> Iterator[tuple[int, Instruction]]:
    """The uses of a register, and of the results of those that have an opcode of ``onward``: each with the register that it uses."""
    waiting, seen = [register], set[int]()
    while waiting:
        held = waiting.pop()
        if held in seen:
            continue
        seen.add(held)
        for use in function.uses.get(held, ()):
            yield held, use
            waiting += [use[2]] if use[0] in onward else []


def held_in(function: Function, register: int) -> Iterator[int]:
    """A register, and those that the function puts into the list or the dictionary that it holds."""
    yield register
    for one in behind(function, [register], lambda one: op.reads(one) if one[0] in (op.PHI, op.COPY) else ()):
        if one[0] == op.BUILD:
            yield from one[4:]
        elif one[0] == op.DICT:
            yield from one[4::2]
        if one[0] in (op.BUILD, op.DICT):
            yield from (use[4] for use in function.uses[one[2]] if use[0] == op.SET_ITEM and use[2] == one[2])


def argument_registers(function: Function, one: Instruction) -> list[Given]:
    """The arguments of a call instruction, in their order, the receiver aside; none of a property, an iterator, the end of a scope."""
    return [(kind, register) for register, kind in arguments_of(function, one)] if one[0] in _GIVING else []


def first_given(given: Sequence[Given]) -> int:
    """The register of the first argument, where it has no keyword."""
    return given[0][1] if given and given[0][0] is None else op.NONE


def inputs_of(function: Function, one: Instruction) -> list[int]:
    """The registers that a call works with: its arguments, and the receiver of a method."""
    given = [register for _, register in argument_registers(function, one)]
    return [*given, one[3]] if one[0] == op.INVOKE else given


def taken_from(function: Function, one: Instruction) -> int | None:
    """The register of what an instruction takes one part of: an element, a row, what `enumerate` or `zip` give of it."""
    held = function.definitions[one[3]] if one[3] >= 0 else None
    if one[0] == op.NEXT:
        return held[3] if held is not None and held[0] == op.ITER else None
    if one[0] != op.UNPACK or held is None or held[0] not in (op.NEXT, op.UNPACK):
        return one[3]
    whole = taken_from(function, held)
    made = function.definitions[whole] if whole is not None and whole >= 0 else None
    name = function.dotted(made[3]) if made is not None and made[0] == op.CALL else ""
    given = [register for _, register in argument_registers(function, made)] if made is not None else []
    place = {"zip": one[4], "enumerate": one[4] - 1}.get(name)
    if place is None:
        return one[3]
    return given[place] if 0 <= place < len(given) else None


def selected(function: Function, one: Instruction, selector: Selector, is_method: bool) -> int | None:
    """The register of the argument that a row's selector means; None where it is not given or unknown."""
    given = argument_registers(function, one)
    receiver = one[3] if one[0] == op.INVOKE else None
    if selector.kind == "self":
        return receiver if is_method else (given[0][1] if given else None)
    if selector.kind != "argument":
        return None
    return selected_of(given, selector)


def selected_of(given: Sequence[Given], selector: Selector) -> int | None:
    """The register of the argument that a selector means: by its position, if nothing is spread or named before, or by its keyword."""
    by_position = [register for _, register in takewhile(lambda each: each[0] is None, given)]
    if selector.position is not None and selector.position < len(by_position):
        return by_position[selector.position]
    return next((register for kind, register in given if isinstance(kind, str) and kind == selector.keyword), None)


def selectors(row: Row, key: str) -> tuple[Selector, ...]:
    """The places that a row's key names."""
    held = row.get(key)
    return held if isinstance(held, tuple) else (held,) if isinstance(held, Selector) else ()


def makes_wait(row: Row, given: Callable[[Selector], int | None], texts: Callable[[int], set[str]], is_shown: OnDevice) -> bool:
    """Whether a row says that the host waits in a call. ``given`` is the register of an argument, ``texts`` the constants that a register
    holds, ``is_shown`` whether it holds a tensor of the device."""
    if row.get("waits"):
        return True
    for case in selectors(row, "waits_if"):
        if (register := given(case)) is not None and texts(register) == {case.default}:
            return True
    without = selectors(row, "waits_without")
    on = selectors(row, "waits_on")
    if not (without or on) or any(given(selector) is not None for selector in without):
        return False
    return not on or any((register := given(selector)) is not None and is_shown(register) for selector in on)


def constants_of(facts: Facts, function: Function, register: int) -> set[str]:
    """What a register is known to hold, as a row writes it; "" stands for what is not known."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] == op.UNARY and function.text(one[3]) == "-" and function.constant(one[4]) is not None:
        return {f"-{function.constant(one[4])}"}
    return {str(value.value).lower() if isinstance(value, Constant) else "" for value in facts.values(function, register).values}


def bound_of(function: Function, call: Instruction, callee: Function) -> int:
    """How many parameters come before the first argument: the receiver, unless it is an argument itself (``Base.method(self, x)``)."""
    if not callee.has_receiver:
        return offset_of(function, call, callee) or 0
    one = function.definitions[call[3]] if call[0] == op.INVOKE else None
    owner = callee.owner
    if one is None or owner is None or one[0] not in (op.NAME, op.ATTR, op.LOAD):
        handing = function.unit.program.handing
        return 0 if handing is not None and handing.is_plain(function, call, callee) else 1
    is_plain = function.dotted(call[3]).rpartition(".")[2] == owner.ir.name and "classmethod" not in callee.decorators
    return 0 if is_plain else 1


def deferred_target(function: Function, call: Instruction) -> Called | None:
    """What a call runs if some of its arguments are not its own: a partial object, a thread; None of any other call."""
    handing = function.unit.program.handing
    return handing.of(function, call) if handing is not None else None


def all_given(function: Function, call: Instruction, callee: Function) -> list[Given]:
    """The arguments that a call runs a function with: its own, those that a partial object or a thread was given before, and the object
    whose class holds a function that is no method of it."""
    handing = function.unit.program.handing
    held = handing.of(function, call) if handing is not None else None
    given = held.given if held is not None else argument_registers(function, call)
    if handing is None or not handing.is_bound(function, call, callee):
        return given
    receiver = receiver_of(function, held.callee) if held is not None else _receiver_given(function, call, None)
    return [(None, op.NONE if receiver is None else receiver), *given]


def kept_by(function: Function, call: Instruction) -> Called | None:
    """What the result of a call keeps until it is called or started: a partial object, a thread; None of any other call."""
    handing = function.unit.program.handing
    return handing.kept(function, call) if handing is not None else None


def _bound_given(function: Function, call: Instruction, callee: Function, held: Called | None) -> int | None:
    """The register of the object whose method a call runs."""
    if held is not None and function.is_cpp:
        return held.callee
    if is_called_by_function(function, call, callee):
        return call[5]
    return _receiver_given(function, call, held) if callee.has_receiver else None


def operand_of(function: Function, call: Instruction, callee: Function, index: int) -> int | None:
    """The register that a call gives for a parameter of a function; None where it gives none, or spreads its arguments."""
    if index >= len(callee.code.parameters) or offset_of(function, call, callee) is None:
        return None
    parameter, bound = callee.code.parameters[index], bound_of(function, call, callee)
    held = deferred_target(function, call)
    if held is not None and function.is_cpp:
        bound = int(callee.code.name == "operator()")  # else the object of a method is the first argument
    if bound > index:
        return _bound_given(function, call, callee, held)
    place = bound
    for kind, register in all_given(function, call, callee):
        if kind == parameter.name or (kind is None and place == index and parameter.kind == "plain"):
            return register
        place = len(callee.code.parameters) if kind == LIST else place + (kind is None)  # behind what is spread none has a place
    return None


def ended_parameter(callee: Function) -> int:
    """The number of the parameter by which a function has the object whose end runs it: a destructor, or the deleter of an owner."""
    return int(callee.has_receiver and callee.code.name == "operator()")


def is_called_by_function(function: Function, call: Instruction, callee: Function) -> bool:
    """Python: whether a call of a function of the language runs a method of its first argument: ``next(held)``, ``len(held)``."""
    if call[0] != op.CALL or len(call) < 6 or callee.is_cpp or not callee.code.name.startswith("__"):
        return False
    return callee.code.name in OF_FUNCTIONS.get(function.dotted(call[3]), ())


def gives_too_few(function: Function, call: Instruction, callee: Function) -> bool:
    """Python: whether a call leaves out an argument that a function needs, and raises an exception."""
    given = all_given(function, call, callee)
    if offset_of(function, call, callee) is None or any(kind in (LIST, DICT) for kind, _ in given):
        return False
    needed = [index for index, one in enumerate(callee.code.parameters) if one.kind in ("plain", "keyword") and one.default is False]
    first = bound_of(function, call, callee)
    return any(index >= first and operand_of(function, call, callee, index) is None for index in needed)


def given_to(caller: Function, call: Instruction, callee: Function, index: int) -> int | None:
    """The register that a call gives for a parameter; None where it is left out, NONE where that is not known."""
    if call[0] in (op.CALL, op.INVOKE):
        return operand_of(caller, call, callee, index)
    if call[0] in (op.CONSTRUCT, op.NEW) and callee.is_cpp:
        place = index - 1
        return call[5:][place] if 0 <= place < len(call[5:]) else None
    return op.NONE


def spread_for(function: Function, call: Instruction, callee: Function, index: int) -> Iterator[tuple[str | int, int]]:
    """What a call spreads that may hold an argument for a parameter, each with the key under which it would."""
    parameter, position = callee.code.parameters[index], bound_of(function, call, callee)
    for kind, register in all_given(function, call, callee):
        if kind == DICT or (kind == LIST and parameter.kind == "plain"):
            yield (parameter.name if kind == DICT else index - position), register
        position += kind is None


def _receiver_given(function: Function, call: Instruction, bound: Called | None) -> int | None:
    """The register of the receiver that a call runs a method with."""
    if bound is not None or call[0] == op.CALL:  # `act = thing.method`
        return receiver_of(function, bound.callee if bound is not None else call[3])
    return call[3] if call[0] == op.INVOKE else None


def is_element_type(facts: Facts, function: Function, register: int) -> bool:
    """Whether what stands where a device may be named is the type of elements: one is among its values, and no device."""
    values = list(facts.values(function, register).values) if register >= 0 else []
    devices = (isinstance(value, (DeviceValue, Memory)) or (isinstance(value, Constant) and value.value is not None) for value in values)
    return any(isinstance(value, External) and _names_type(facts, value) for value in values) and not any(devices)


def _names_type(facts: Facts, value: External) -> bool:
    """``torch.float16``, ``at::kHalf``, or what stands for ``x.dtype``."""
    if isinstance(value, CppName):
        return any(value.name in facts.cpp_models.marked(size) for size in _SIZES)
    module, _, name = value.name.rpartition(".")
    return value.name == ELEMENT_TYPE or (value.receiver is None and module in facts.models.marked("array-package") and name != "device")


def makes_nothing(function: Function, one: Instruction | None) -> bool:
    """Whether a factory makes memory of no elements: of a display without any, of a shape that names 0, or of nothing."""
    if one is None or one[0] not in (op.CALL, op.INVOKE):
        return False
    name = last_name(function, one)
    every = argument_registers(function, one)
    given = [register for kind, register in every if kind is None]
    if name in function.known("of-data"):
        return bool(given) and _is_empty_display(function, given[0])
    return (name in function.known("of-shape") and any(function.constant(register) == 0 for register in given)) or (
        name in function.known("tensor-class") and not every
    )


def _is_empty_display(function: Function, register: int) -> bool:
    """Whether a register holds a display without elements, which one instruction alone is given."""
    made = function.definitions[register] if register >= 0 else None
    return made is not None and made[0] == op.BUILD and len(made) == 4 and len(function.uses[register]) == 1
