"""Work whose stream changes from round to round of a loop: the next round may do it anew beside the last one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.counters import is_counter, iterable_of
from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.places.flow import BUFFER, EVENT, SAME_ELEMENTS, STREAM, Tracked
from streamlint.ordering.places.places import ASIDE, Element, Key, Place, Places
from streamlint.transfer.modelled import operands_of
from streamlint.waits.operands import argument_registers
from streamlint.waits.questions import alike

EARLIER = "elsewhere"
"""Begins the key of an element that an index has named in another round, or in a function whose indices this one cannot name."""
NEXT = "next"
"""Begins the key of an element that an index names in the round which begins."""
_PARTS = {op.ATTR: 3, op.COPY: 3, op.DEREF: 3, op.CAST: 4, op.ENTER: 3}
_DEEPEST = 8


def turning(function: Function, register: int) -> Loop | None:
    """The innermost loop whose rounds give a register another element of a container each."""
    for _ in range(_DEEPEST):
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            return None
        if one[0] in (op.NEXT, op.PHI) or (one[0] == op.ITEM and function.constant(one[4]) is None):
            return _varying(function, one)
        if one[0] not in _PARTS:
            return None
        register = one[_PARTS[one[0]]]
    return None


def gone_through(function: Function, register: int) -> int:
    """The register of the container whose elements a loop goes through, if a register holds the one of a round: also by ``enumerate`` and
    ``zip``, by the values of a dictionary, or by an index that counts."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] == op.ITEM and _is_of_round(function, one[4]):
        return one[3]
    path: tuple[Key, ...] = ()
    while one is not None and one[0] == op.UNPACK and one[6] == op.NONE:
        path, one = (Element(one[4]), *path), function.definitions[one[3]]
    over = iterable_of(function, one)
    return _paired(function, over, path) if over >= 0 else op.NONE


def _paired(function: Function, register: int, path: tuple[Key, ...]) -> int:
    """The register of the container that a loop goes through by a register, where it takes parts of what functions give of its elements."""
    definition = function.definitions[register]
    inside = passed_on(function, definition, path) or values_of(function, definition, path) if definition is not None else None
    if inside is not None:
        return _paired(function, *inside)
    is_entry = definition is not None and function.invokes(definition, "gives-entries")
    return op.NONE if path or is_entry else register


def values_of(function: Function, one: Instruction, path: tuple[Key, ...]) -> tuple[int, tuple[Key, ...]] | None:
    """The dictionary whose values a call gives, with the keys that lead into one of them: ``d.values()``, the second of ``d.items()``."""
    if function.invokes(one, "gives-values"):
        return one[3], path
    is_second = bool(path) and path[0] == Element(1)
    return (one[3], path[1:]) if is_second and function.invokes(one, "gives-entries") else None


def as_elements(places: Places, function: Function, tracked: Iterable[Tracked]) -> Iterator[Tracked]:
    """What is tracked in registers that hold an element of a container for a round, by the container."""
    for held in tracked:
        if held.kind in (BUFFER, EVENT, STREAM) and held.place.root[0] == "register":
            for place in elements(places, function, int(str(held.place.root[1]))):
                yield held._replace(place=place.behind(*held.place.path))


def passed_on(function: Function, one: Instruction, path: tuple[Key, ...]) -> tuple[int, tuple[Key, ...]] | None:
    """The argument of a call whose elements it passes on, with the keys that lead into those."""
    if one[0] != op.CALL:
        return None
    name, given = function.dotted(one[3]), [register for _, register in argument_registers(function, one)]
    index = path[0].key if path and isinstance(path[0], Element) else None
    if name.rpartition(".")[2] in function.known("zips") and isinstance(index, int) and index < len(given):
        return given[index], path[1:]
    if name == "enumerate" and index == 1 and given:
        return given[0], path[1:]
    return (given[0], path) if name in SAME_ELEMENTS and given else None


def elements(places: Places, function: Function, register: int) -> Iterator[Place]:
    """The names of an element that a loop takes from a container in each round, by the container: its index is what the round takes."""
    container, one = gone_through(function, register), function.definitions[register] if register >= 0 else None
    if container >= 0 and one is not None and one[0] in (op.NEXT, op.UNPACK):
        yield from (place.behind(Element((one[2],))) for place in places.names(function, container))


def _is_of_round(function: Function, index: int) -> bool:
    """Whether an index is what counts the rounds of a loop itself."""
    one = function.definitions[index] if index >= 0 else None
    return one is not None and one[0] in (op.PHI, op.NEXT) and is_counter(function, index)


def _varying(function: Function, one: Instruction) -> Loop | None:
    loop = next(function.control.around(function.blocks[one]), None)
    if loop is None or one[0] == op.NEXT:
        return loop
    if one[0] == op.PHI:  # an iterator that is moved on
        return loop if function.blocks[one] == loop.header and any(_is_step(function, each) for each in one[3:]) else None
    return loop if rests_on(alike(function, one[4]), function, loop) else None


def _is_step(function: Function, register: int) -> bool:
    """Whether a value is the next one of an iterator: ``++it``."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] in (op.BINARY, op.INPLACE, op.UNARY)


def rests_on(key: object, function: Function, loop: Loop) -> bool:
    """Whether an expression rests on a register that the rounds of a loop define."""
    if not isinstance(key, tuple):
        return False
    if len(key) == 1 and isinstance(key[0], int):
        definition = function.definitions[key[0]] if 0 <= key[0] < len(function.definitions) else None
        return definition is not None and function.blocks[definition] in loop.body
    return any(rests_on(part, function, loop) for part in key)


def names(key: object, register: int) -> bool:
    """Whether an expression names a register."""
    return isinstance(key, tuple) and (key == (register,) or any(names(part, register) for part in key if isinstance(part, tuple)))


def is_stale(place: Place, register: int) -> bool:
    """Whether an index on the way to a place names a register; those that were put aside name registers of other functions."""
    return place.root[0] != ASIDE and any(isinstance(key, Element) and is_own(key.key) and names(key.key, register) for key in place.path)


def earlier(place: Place, register: int) -> Place:
    """A place whose indices name what a register has held before; of the round that begins, what it holds from here on."""
    return Place(place.root, tuple(_renamed(key, register) for key in place.path))


def is_slot(place: Place) -> bool:
    """Whether a place stands at an index that is an expression."""
    return any(isinstance(key, Element) and isinstance(key.key, tuple) for key in place.path)


def ahead(place: Place) -> Place:
    """A place by the names of the round that begins, before its indices are computed."""
    if place.root[0] == ASIDE:
        return place
    path = (Element((NEXT, key.key)) if isinstance(key, Element) and isinstance(key.key, tuple) else key for key in place.path)
    return Place(place.root, tuple(path))


def named_before(key: Key) -> object | None:
    """The index that has named an element in another round, or in another function; None of a key that stands for itself."""
    return key.key[1] if isinstance(key, Element) and isinstance(key.key, tuple) and key.key[:1] == (EARLIER,) else None


def is_cyclic(key: Key) -> bool:
    """Whether an index that an earlier round has named goes round: a later round means the same element by it."""
    return _is_remainder(named_before(key))


def goes_round(place: Place) -> bool:
    """Whether rounds come back to an element of a place: ``ring[(i + 1) % n]``."""
    return any(isinstance(key, Element) and _is_remainder(key.key) for key in place.path)


def _is_remainder(index: object) -> bool:
    return isinstance(index, tuple) and len(index) > 1 and index[0] == op.BINARY and index[1] in ("%", "&")


def again(place: Place, function: Function, loop: Loop) -> Place:
    """A place by the names of a later round of a loop, where indices that come again mean it."""
    if place.root[0] == ASIDE:
        return place
    return Place(place.root, tuple(_again(key, function, loop) for key in place.path))


def _again(key: Key, function: Function, loop: Loop) -> Key:
    if not is_cyclic(key) or not isinstance(key, Element) or not isinstance(key.key, tuple):
        return key
    return Element((NEXT, key.key[1])) if rests_on(key.key[1], function, loop) else key


def _renamed(key: Key, register: int) -> Key:
    if not isinstance(key, Element) or not is_own(key.key) or not names(key.key, register):
        return key
    is_next = isinstance(key.key, tuple) and key.key[0] == NEXT
    return Element(key.key[1] if is_next and isinstance(key.key, tuple) else (EARLIER, key.key))


def may_be_earlier(place: Place, held: Place) -> bool:
    """Whether a place may be the one that an index has named in an earlier round: by another expression than that one."""
    if place.root != held.root or len(place.path) != len(held.path) or place.path == held.path:
        return False
    return all(one == other or _may_have_named(one, other) for one, other in zip(place.path, held.path, strict=True))


def _may_have_named(key: Key, held: Key) -> bool:
    if not (isinstance(key, Element) and isinstance(held, Element) and isinstance(key.key, tuple) and isinstance(held.key, tuple)):
        return False
    return held.key[:1] == (EARLIER,) and is_own(key.key) and key.key != held.key[1]


def stays(place: Place, function: Function, loop: Loop) -> bool:
    """Whether a place means the same memory in the next round of a loop."""
    if place.root[0] == "register":
        definition = function.definitions[int(str(place.root[1]))]
        if definition is not None and function.blocks[definition] in loop.body:
            return False
    keys: Iterable[object] = (key.key for key in place.path if isinstance(key, Element))
    return not any(rests_on(key, function, loop) for key in keys)


def counts(place: Place, function: Function, loop: Loop) -> bool:
    """Whether each round of a loop means another element of the same container by a place, and none comes again."""
    keys = (key.key for key in place.path if isinstance(key, Element))
    is_own = any(rests_on(key, function, loop) for key in keys) and not goes_round(place)
    return is_own and stays(Place(place.root, ()), function, loop)


def is_distinguished(function: Function, one: Instruction, loop: Loop, memory: Iterable[int]) -> bool:
    """Whether work is given anything beside its memory that tells rounds apart: it may touch a part of the memory that is its own."""
    kept = set(memory)
    given = list(_given(function, one))
    for each in given:
        definition = function.definitions[each] if each >= 0 else None
        if definition is not None and definition[0] == op.BUILD:
            given += definition[4:]
        elif each not in kept and rests_on(alike(function, each), function, loop):
            return True
    return False


def _given(function: Function, one: Instruction) -> Iterable[int]:
    """What an instruction is given; to an assignment, where it stores."""
    if one[0] == op.LAUNCH:
        return one[6 + one[5] :]
    if one[0] == op.SET_ITEM:
        return one[3:4]
    return operands_of(function, one, False) if one[0] in (op.CALL, op.INVOKE) else ()


def varies(terms: Iterable[object], function: Function, loop: Loop) -> bool:
    """Whether any of some expressions rests on what the rounds of a loop define."""
    return any(rests_on(key, function, loop) for key in terms)


def is_own(key: object) -> bool:
    """Whether an expression is one of the current round."""
    return isinstance(key, tuple) and key[:1] != (EARLIER,)
