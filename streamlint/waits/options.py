"""Options that are off unless somebody turns them on: a parameter's default, also one that the constructor keeps in an attribute."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import arguments_of
from streamlint.facts.code.objects import Constant, External, Instance, Memory, Object, Scalar
from streamlint.facts.code.stores import Store
from streamlint.facts.graph.aliases import source_of
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.constants import constants_of
from streamlint.waits.filled import Asked
from streamlint.waits.operands import operand_of
from streamlint.waits.origins import TENSOR
from streamlint.waits.questions import alike, compares, conditions

Option = tuple[Function, Instruction]
"""A parameter."""
_OPERATORS: dict[str, Callable[[Any, Any], object]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def is_off(facts: Facts, function: Function, register: int, holds: bool) -> bool:
    """Whether a condition comes out so only for an option that is off by default, and that nobody in view turns on; or never, as all calls
    in view decide it."""
    if constants_of(facts).truth(function, register) is (not holds) or (not holds and _asks_of_tensor(facts, function, register)):
        return True
    register, compare = _is_missing(function, register) or question_of(function, register)
    one = function.definitions[register]
    if one is None or one[0] not in (op.PARAM, op.ATTR, op.LOAD, op.NAME):
        return False
    known, others = _held(facts, function, one)
    is_open = _is_kept(facts, function, one) if None in known else all(map(_is_open, others))
    return bool(known) and is_open and all(type(value) in (int, bool, type(None)) and bool(compare(value)) != holds for value in known)


def _is_missing(function: Function, register: int) -> tuple[int, Callable[[object], object]] | None:
    """The same as of `question_of` of a condition that asks whether something is None."""
    compared = compares(function, register)
    if compared is None or compared[0] not in ("is", "is not") or compared[2] is not None:
        return None
    sign, left, _ = compared
    return left, lambda value: (value is None) == (sign == "is")


def _is_kept(facts: Facts, function: Function, one: Instruction) -> bool:
    """Whether an attribute is what the constructor was given, which nobody in view gives but as a constant, and nobody else sets it: an
    option, and no state that begins as None."""
    owner, name = function.method.owner if function.method is not None else None, function.text(one[4]) if one[0] == op.ATTR else ""
    stores = owner.own_stores.get(name, ()) if owner is not None and name else ()
    kept = list(_parameters(function, one))
    if not stores or len(kept) < len(stores) or any(unit.attribute_stores.get(name) for unit in facts.program.mentioning(name)):
        return False
    places = list(_passed_to(facts, kept))
    return all(_is_left_alone(facts, *place, places) for place in places)


def _held(facts: Facts, function: Function, one: Instruction) -> tuple[list[Any], list[Object]]:
    """The constants that an option may be, and what else it may be."""
    values: Iterable[Object] = facts.values(function, one[2]).values
    kept = list(_parameters(function, one))
    if not kept and (kept := list(_passed_on(facts, function, one))):
        values = [value for holder, parameter in kept for value in facts.values(holder, parameter[2]).values]
    known = [value.value for value in values if isinstance(value, Constant)]
    kept = list(_passed_to(facts, kept))
    known += _defaults(kept)
    others = [value for value in values if not isinstance(value, Constant)]
    if any(isinstance(value, Scalar) for value in others) and (reckoned := _reckoned(facts, kept)):
        known += reckoned
        others = _without_numbers(others)
    return known, _not_declared(facts, function, one, kept, others)


def _asks_of_tensor(facts: Facts, function: Function, register: int) -> bool:
    """Whether a condition asks if that is a tensor which is one in all calls in view."""
    one = function.definitions[register]
    rows = list(facts.rows(function, one)) if one is not None and one[0] in (op.CALL, op.INVOKE) and not function.is_cpp else []
    given = [held for held, _ in arguments_of(function, one)] if one is not None and rows else []
    if len(given) != 1 or not all(row.get("asks_for_tensor") for row in rows):
        return False
    values = [value for value in facts.values(function, given[0]).values if not _is_open(value)]
    return bool(values) and all(isinstance(value, Memory) and TENSOR in facts.models.lineage(value.type) for value in values)


def _is_open(value: Object) -> bool:
    """Whether a value only says that unknown callers, or the library's class behind an object, may have another one."""
    return getattr(value, "reason", "") == "caller" or (isinstance(value, External) and isinstance(value.receiver, Instance))


def question_of(function: Function, register: int) -> tuple[int, Callable[[object], object]]:
    """The register that a condition asks for, and how it comes out for a value of that."""
    compared = compares(function, register)
    if compared is None or compared[0] not in _OPERATORS or type(compared[2]) not in (int, bool):
        return register, bool
    sign, left, number = compared
    return left, lambda value: (value is not None or sign in ("==", "!=")) and _OPERATORS[sign](value, number)


def _not_declared(facts: Facts, function: Function, one: Instruction, kept: list[Option], others: list[Object]) -> list[Object]:
    """Of what an option may be beside constants, that which declarations do not say to be numbers."""
    if kept:
        return _without_numbers(others) if all(_is_only_declared(facts, *place, kept) for place in kept) else others
    if not _is_field_left_alone(facts, function, one):
        return others
    return [value for value in _without_numbers(others) if getattr(value, "reason", "") != "external"]


def _without_numbers(values: Iterable[Object]) -> list[Object]:
    return [value for value in values if not isinstance(value, Scalar)]


def is_left_out(function: Function, asked: Asked) -> bool:
    """``if self.file is not None`` where the constructor gives None unless somebody asks for more, and the place does not ask for that."""
    compared = compares(function, asked.register)
    if compared is None or compared[0] not in ("is", "is not") or compared[2] is not None or (compared[0] == "is not") != asked.holds:
        return False
    one = function.definitions[compared[1]]
    owner = function.method.owner if function.method is not None else None
    if one is None or one[0] != op.ATTR or owner is None:
        return False
    stores = [store for store in owner.own_stores.get(function.text(one[4]), ()) if store.function.code.name == "__init__"]
    given = [store for store in stores if None not in _choices(store.function, store.value)]
    if len(given) == len(stores):
        return False
    known = {
        function.text(part[4])
        for part in _asked_before(function, asked.edge.block)
        if part[0] == op.ATTR and function.is_parameter(part[3])
    }
    return not given or not all(_hangs_on(owner, store, known) for store in given)


def _asked_before(function: Function, block: int) -> Iterator[Instruction]:
    """What holds as true wherever a block runs."""
    asked = (function.definitions[register] for register, holds in conditions(function, block) if holds)
    return (one for one in asked if one is not None)


def _hangs_on(owner: ClassInfo, store: Store, names: Iterable[str]) -> bool:
    """Whether a constructor sets an attribute only where it is given what it keeps as one of others."""
    function = store.function
    held = {alike(function, one[2]) for one in _asked_before(function, function.blocks[store.instruction])}
    kept = (other for name in names for other in owner.own_stores.get(name, ()) if other.function is function)
    return any(alike(function, other.value) in held for other in kept)


def _passed_to(facts: Facts, kept: list[Option]) -> Iterator[Option]:
    """Parameters, and those of callers that hand theirs on and have a default for it."""
    waiting, seen = list(kept), set[Option]()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        yield place
        for caller, given in _given(facts, *place):
            source = source_of(caller, given)
            if source is not None and source[0] == op.PARAM and caller.default_register(source[3]) is not None:
                waiting.append((caller, source))


def _given(facts: Facts, function: Function, parameter: Instruction) -> Iterator[tuple[Function, int]]:
    """What known callers give for a parameter; NONE where that is unknown."""
    for _, arguments in facts.callers(function):
        site = arguments.site
        if site is None or site.instruction[0] not in (op.CALL, op.INVOKE):
            yield function, op.NONE
        elif (given := operand_of(site.function, site.instruction, function, parameter[3])) is not None:
            yield site.function, given


def _reckoned(facts: Facts, kept: list[Option]) -> list[object]:
    """The numbers that known callers reckon from constants for parameters (``verbose - 1``); none if one of them is unknown."""
    found: list[object] = []
    for place in kept:
        for caller, given in _given(facts, *place):
            numbers = _numbers(facts, caller, given)
            if not numbers:
                return []
            found += numbers
    return found


def _numbers(facts: Facts, function: Function, register: int) -> list[Any]:
    """The whole numbers that a register may hold, over arithmetic on constants; none where others are possible."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] == op.BINARY and (reckon := _ARITHMETIC.get(function.text(one[3]))) is not None:
        left, right = (_numbers(facts, function, operand) for operand in one[4:6])
        return [reckon(first, second) for first in left for second in right]
    values = (
        [value.value if isinstance(value, Constant) else None for value in facts.values(function, register).values] if register >= 0 else []
    )
    return values if all(type(value) in (int, bool) for value in values) else []


def _is_only_declared(facts: Facts, function: Function, parameter: Instruction, kept: list[Option]) -> bool:
    """Whether a parameter is declared as a number, and callers in view leave it alone."""
    return facts.is_declared_number(function, function.code.parameters[parameter[3]]) and _is_left_alone(facts, function, parameter, kept)


def _is_left_alone(facts: Facts, function: Function, parameter: Instruction, kept: list[Option]) -> bool:
    """Whether callers in view give constants for a parameter, or hand on a parameter that is one of ``kept``."""
    for caller, given in _given(facts, function, parameter):
        if given < 0:
            return False
        values = list(facts.values(caller, given).values)
        is_known = bool(values) and all(isinstance(value, Constant) for value in values)
        if not is_known and (caller, source_of(caller, given)) not in kept:
            return False
    return True


def _is_field_left_alone(facts: Facts, function: Function, one: Instruction) -> bool:
    """Whether an instruction reads a declared field that no code in view sets to what is not known, when it makes the object or later."""
    name = function.text(one[4]) if one[0] == op.ATTR else ""
    held = list(facts.values(function, one[3]).values) if name else []
    classes = [each for value in held if isinstance(value, Instance) for each in facts.possible_classes(value)]
    if not classes or not all(isinstance(value, (Instance, External)) for value in held):  # what a library's class has beside it
        return False
    if any(unit.attribute_stores.get(name) for unit in facts.program.mentioning(name)):
        return False
    return all(
        name in facts.fields(each) and all(_leaves_alone(facts, each, name, *place) for place in facts.construction_places(each))
        for each in classes
    )


def _leaves_alone(facts: Facts, definition: ClassInfo, name: str, function: Function, call: Instruction) -> bool:
    """Whether a call that makes an object gives a field a constant, or nothing by its name or place."""
    fields = facts.fields(definition)
    given = [
        register
        for place, (register, kind) in enumerate(arguments_of(function, call))
        if kind == name or (kind is None and fields[place : place + 1] == [name])
    ]
    return all(isinstance(value, Constant) for register in given for value in facts.values(function, register).values)


def _parameters(function: Function, one: Instruction) -> Iterator[tuple[Function, Instruction]]:
    """The parameter that an instruction reads, or those that the constructor keeps in the attribute that it reads."""
    owner = function.method.owner if function.method is not None else None
    kept = [(function, one)]
    if one[0] == op.ATTR and owner is not None and function.is_parameter(one[3]):
        stores = (store for store in owner.own_stores.get(function.text(one[4]), ()) if store.function.code.name == "__init__")
        kept = [(store.function, source) for store in stores if (source := source_of(store.function, store.value)) is not None]
    yield from ((holder, parameter) for holder, parameter in kept if parameter[0] == op.PARAM)


def _passed_on(facts: Facts, function: Function, one: Instruction) -> Iterator[tuple[Function, Instruction]]:
    """The constructor's parameter that the constructor of a library's base is given under the name of the attribute that is read."""
    name = function.text(one[4]) if one[0] == op.ATTR else ""
    values = facts.values(function, one[3]).values if name else ()
    for owner in [value.definition for value in values if isinstance(value, Instance)]:
        if any(name in each.own_stores for each in facts.hierarchy.order(owner)):
            continue
        for made in owner.methods.get("__init__", ()):
            for call in made.by_opcode[op.INVOKE]:
                for register, kind in arguments_of(made, call) if made.text(call[4]) == "__init__" else ():
                    source = source_of(made, register) if kind == name else None
                    if source is not None and source[0] == op.PARAM:
                        yield made, source


def _defaults(kept: list[tuple[Function, Instruction]]) -> Iterator[object]:
    """The constant defaults of parameters."""
    for holder, parameter in kept:
        register = holder.default_register(parameter[3])
        if register is not None and holder.parent is not None:
            yield from _choices(holder.parent, register)


def _choices(function: Function, register: int) -> Iterator[object]:
    """The constants that a register may hold, over the arms of a conditional expression."""
    seen: set[int] = set()
    waiting = [register]
    while waiting:
        held = waiting.pop()
        one = source_of(function, held)
        if one is None or held in seen:
            continue
        seen.add(held)
        if one[0] == op.CONST:
            yield function.unit.ir.constants[one[3]]
        waiting += one[3:] if one[0] == op.PHI else []
