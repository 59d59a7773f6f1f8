"""Arguments that an object holds until it is called: what ``functools.partial`` was given, by the place of the object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.frames import Arguments
from streamlint.facts.functions import Function
from streamlint.facts.handing import receiver_of
from streamlint.facts.objects import BoundMethod, BoundPartial, ClassObject, FunctionObject, Object, PartialObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places import Place, Places
from streamlint.waits.operands import argument_registers, operand_of

_RECEIVER = "object"
_DEEPEST = 4


def key_of(place: object) -> str:
    """The key of an argument that a partial object holds: by its number, the callable's is 0, or by its name. No attribute is called so."""
    return f"given {place}"


def kept(places: Places, function: Function, one: Instruction, target: Place) -> Iterator[tuple[tuple[Place, ...], Place]]:
    """The places of what a call puts into the partial object that it makes, and where it stands there."""
    if one[0] not in (op.CALL, op.INVOKE) or function.is_cpp or not _makes(places, function, one):
        return
    for number, (kind, register) in enumerate(argument_registers(function, one)):
        if kind == 1:
            return  # what follows is at no known place
        if kind is None or isinstance(kind, str):
            yield places.names(function, register), target.behind(key_of(number if kind is None else kind))
        if number == 0 and (receiver := receiver_of(function, register)) is not None:
            yield places.names(function, receiver), target.behind(key_of(_RECEIVER))


def _makes(places: Places, function: Function, one: Instruction) -> bool:
    """Whether a call makes a partial object."""
    return len(one) > 5 and any(isinstance(value, PartialObject) for value in places.facts.values(function, one[2]).values)


def prepared(places: Places, function: Function, one: Instruction, callee: Function, index: int) -> tuple[Place, ...] | None:
    """Where the value of a parameter stands that a partial object leads to: in the object, and in registers of who calls it; None where
    the call calls none."""
    if one[0] not in (op.CALL, op.INVOKE) or function.is_cpp:
        return None
    found: dict[Place, None] | None = None
    for layers, bound, is_method in _layers(places.facts.callees(function, one), callee):
        found = found if found is not None else {}
        if index < bound and one[0] == op.INVOKE and is_method:
            found.update(dict.fromkeys(places.names(function, one[3])))
            continue
        if (held := _held(layers, callee, index, bound)) is not None:
            depth, key = held
            keys = (*(key_of(0),) * depth, key_of(key))
            found.update(dict.fromkeys(name.behind(*keys) for name in _objects(places, function, one)))
            found.update(dict.fromkeys(_as_made(places, function, one, layers[depth], key)))
        register = operand_of(function, one, callee, index)
        if function.unit.program.handing(function, one) is None:
            before = bound + sum(len(each.positional) for each in layers)
            register = _given(function, one, callee.code.parameters[index].name, index - before)
        if register is not None and register >= 0:
            found.update(dict.fromkeys(places.names(function, register)))
    return tuple(found) if found is not None else None


def _given(function: Function, one: Instruction, name: str, place: int) -> int | None:
    """The register of an argument of a call itself, by its name or by its position."""
    for number, (kind, register) in enumerate(argument_registers(function, one)):
        if kind == name or (kind is None and number == place):
            return register
    return None


def _objects(places: Places, function: Function, one: Instruction) -> tuple[Place, ...]:
    """The places of what a call calls."""
    names = places.names(function, one[3])
    return tuple(name.behind(function.text(one[4])) for name in names) if one[0] == op.INVOKE else names


def _layers(values: Iterable[Object], callee: Function) -> Iterator[tuple[list[Arguments], int, bool]]:
    """The arguments that partial objects hold which call a function, those of the outermost object first; how many parameters come
    before them, and whether it is a method of the object that has it (``functools.partialmethod``)."""
    for value in values:
        is_method = isinstance(value, BoundPartial)
        found: list[Arguments] = []
        while isinstance(value, PartialObject) and len(found) < _DEEPEST:
            found.append(value.arguments)
            value = value.callee
        is_bound = isinstance(value, (BoundMethod, ClassObject))
        called = value.method if isinstance(value, BoundMethod) else value
        is_meant = isinstance(called, ClassObject) or (isinstance(called, FunctionObject) and called.function is callee)
        if found and is_meant:
            yield found, int(is_bound and callee.has_receiver), is_method


def _held(layers: list[Arguments], callee: Function, index: int, bound: int) -> tuple[int, object] | None:
    """Which of the partial objects holds the value of a parameter, the outermost is 0, and under which number or name."""
    name, place = callee.code.parameters[index].name, index - bound
    if place < 0:
        return len(layers) - 1, _RECEIVER
    for depth in range(len(layers) - 1, -1, -1):
        held = layers[depth]
        if name in held.keywords and not any(name in each.keywords for each in layers[:depth]):
            return depth, name
        if place < len(held.positional):
            return depth, place + 1
        place -= len(held.positional)
    return None


def _as_made(places: Places, function: Function, one: Instruction, held: Arguments, key: object) -> Iterator[Place]:
    """Other names of what a partial object holds: a global, or another attribute of the object whose attribute is called."""
    if held.site is None:
        return
    maker = held.site.function
    for number, (kind, register) in enumerate(argument_registers(maker, held.site.instruction)):
        if key in ((number, kind) if kind is not None else (number,)):
            place = places.of(maker, register)
            if place.root[0] == "global":
                yield place
            elif place.root == ("parameter", 0) and one[0] == op.INVOKE and maker.method is maker:
                yield from (name.behind(*place.path) for name in places.names(function, one[3]) if place.path)
