"""Arguments that an object holds until it is called or started: what ``functools.partial`` or a thread was given, by the object's place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.handing import Called, receiver_of
from streamlint.facts.code.objects import (
    BoundMethod,
    BoundPartial,
    ClassObject,
    External,
    FunctionObject,
    LibraryObject,
    Object,
    PartialObject,
    Site,
)
from streamlint.facts.values.frames import Arguments
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.library_flow import elements_given
from streamlint.ordering.places.places import Place, Places
from streamlint.ordering.places.spread import spread_to
from streamlint.waits.operands import argument_registers, deferred_target, kept_by, operand_of

_RECEIVER = "object"
_DEEPEST = 4


class Layer(NamedTuple):
    """What one object was given: how many arguments by position, the names of the others, and where. ``spreads``: what follows those by
    position is spread, so that no argument behind it has a known place."""

    positions: int
    names: frozenset[object]
    site: Site | None
    spreads: bool = False


class Layers(NamedTuple):
    """Objects that lead to a function, the outermost first: ``bound`` is the number of parameters before their arguments, ``is_started``
    says that a thread is started, and ``is_method`` that the object is a method of the one that has it (``functools.partialmethod``)."""

    held: list[Layer]
    bound: int
    is_started: bool = False
    is_method: bool = False


def key_of(place: object) -> str:
    """The key of an argument that an object holds: by its number, the callable's is 0, or by its name. No attribute is called so."""
    return f"given {place}"


def kept(places: Places, function: Function, one: Instruction, target: Place) -> Iterator[tuple[tuple[Place, ...], Place]]:
    """The places of what a call puts into the partial object or the thread that it makes, and where it stands there."""
    found = kept_by(function, one)
    if found is None:
        return
    for key, register in _numbered(found):
        yield places.names(function, register), target.behind(key_of(key))
    yield places.names(function, found.callee), target.behind(key_of(0))
    if (receiver := receiver_of(function, found.callee)) is not None:
        yield places.names(function, receiver), target.behind(key_of(_RECEIVER))


def _numbered(called: Called) -> Iterator[tuple[object, int]]:
    """The arguments of a call by their numbers, from 1 on, and by their names."""
    for number, (kind, register) in enumerate(called.given, 1):
        if kind == 1:
            return  # what follows is at no known place
        if kind is None or isinstance(kind, str):
            yield (number if kind is None else kind), register


def prepared(places: Places, function: Function, one: Instruction, callee: Function, index: int) -> tuple[Place, ...] | None:
    """Where the value of a parameter stands that an object leads to which is called or started: in the object, and in registers of the
    function; None where the call calls none."""
    if one[0] not in (op.CALL, op.INVOKE) or function.is_cpp:
        return None
    if (held := elements_given(places, function, one, callee, index)) is not None:
        return held
    found: dict[Place, None] | None = None
    for layers in _layers(places, places.facts.callees(function, one), callee):
        found = found if found is not None else {}
        found.update(dict.fromkeys(_places(places, function, one, callee, index, layers)))
    return tuple(found) if found is not None else None


def _places(places: Places, function: Function, one: Instruction, callee: Function, index: int, layers: Layers) -> Iterator[Place]:
    if index < layers.bound and one[0] == op.INVOKE and layers.is_method:
        yield from places.names(function, one[3])
        return
    held = _held(layers, callee, index)
    if held is not None:
        depth, key = held
        keys = (*(key_of(0),) * depth, key_of(key))
        yield from (name.behind(*keys) for name in _objects(places, function, one, layers))
        yield from _as_made(places, function, one, layers, depth, key)
    register, is_shown = operand_of(function, one, callee, index), deferred_target(function, one) is not None
    if register is None and is_shown:
        yield from spread_to(places, function, one, callee, index)
    if not layers.is_started and not is_shown:
        before = layers.bound + sum(layer.positions for layer in layers.held)
        place = index - before if not any(layer.spreads for layer in layers.held) else None
        register = _given(function, one, callee.code.parameters[index].name, place)
    if register is not None and register >= 0 and not (layers.is_started and register == one[3]):
        yield from places.names(function, register)


def _given(function: Function, one: Instruction, name: str, place: int | None) -> int | None:
    """The register of an argument of a call itself, by its name or by its position."""
    for number, (kind, register) in enumerate(argument_registers(function, one)):
        if kind == name or (kind is None and number == place):
            return register
    return None


def _objects(places: Places, function: Function, one: Instruction, layers: Layers) -> tuple[Place, ...]:
    """The places of what a call calls, or of the thread that it starts."""
    names = places.names(function, one[3])
    is_member = one[0] == op.INVOKE and not layers.is_started
    return tuple(name.behind(function.text(one[4])) for name in names) if is_member else names


def _layers(places: Places, values: Iterable[Object], callee: Function) -> Iterator[Layers]:
    """The objects that lead to a function which a call may call or start."""
    for value in values:
        if isinstance(value, External):
            yield from _of_thread(places, value, callee)
            continue
        is_method = isinstance(value, BoundPartial)
        held: list[Layer] = []
        while isinstance(value, PartialObject) and len(held) < _DEEPEST:
            held.append(_of_arguments(value.arguments))
            value = value.callee
        if held and _leads_to(value, callee):
            is_bound = isinstance(value, (BoundMethod, ClassObject)) and callee.has_receiver
            yield Layers(held, int(is_bound), False, is_method)


def _of_arguments(arguments: Arguments) -> Layer:
    return Layer(len(arguments.positional), frozenset(arguments.keywords), arguments.site, bool(arguments.starred))


def _of_thread(places: Places, value: External, callee: Function) -> Iterator[Layers]:
    """A thread that was made before, and is started here."""
    row = places.facts.row_of(value)
    creation = value.receiver.site if isinstance(value.receiver, LibraryObject) else None
    if row is None or row.effect != "start" or creation is None:
        return
    given = kept_by(creation.function, creation.instruction)
    if given is None:
        return
    values = places.facts.values(creation.function, given.callee).values
    own = next((value for value in values if _leads_to(value, callee)), None)
    keys = [key for key, _ in _numbered(given)]
    layer = Layer(sum(isinstance(key, int) for key in keys), frozenset(keys), creation)
    yield Layers([layer], int(isinstance(own, (BoundMethod, ClassObject)) and callee.has_receiver), is_started=True)


def _leads_to(value: Object, callee: Function) -> bool:
    """Whether an object is a function, a method of it, or a class whose constructor it may be."""
    called = value.method if isinstance(value, BoundMethod) else value
    return isinstance(called, ClassObject) or (isinstance(called, FunctionObject) and called.function is callee)


def _held(layers: Layers, callee: Function, index: int) -> tuple[int, object] | None:
    """Which of the objects holds the value of a parameter, the outermost is 0, and under which number or name."""
    name, place, held = callee.code.parameters[index].name, index - layers.bound, layers.held
    if place < 0:
        return len(held) - 1, _RECEIVER
    is_placed = True
    for depth in range(len(held) - 1, -1, -1):
        if name in held[depth].names and not any(name in each.names for each in held[:depth]):
            return depth, name
        if is_placed and place < held[depth].positions:
            return depth, place + 1
        place -= held[depth].positions
        is_placed = is_placed and not held[depth].spreads
    return None


def _as_made(places: Places, function: Function, one: Instruction, layers: Layers, depth: int, key: object) -> Iterator[Place]:
    """Other names of what an object holds: a global, or another attribute of the object whose attribute is called or started."""
    site = layers.held[depth].site
    if site is None or (given := kept_by(site.function, site.instruction)) is None:
        return
    owner = one[3] if one[0] == op.INVOKE else None
    if owner is not None and layers.is_started:  # `self.worker.start()`
        owner = receiver_of(function, owner)
    for register in (each for name, each in _numbered(given) if name == key):
        place = places.of(site.function, register)
        if place.root[0] == "global":
            yield place
        elif place.root == ("parameter", 0) and site.function.method is site.function and place.path and owner is not None:
            yield from (name.behind(*place.path) for name in places.names(function, owner))
