"""Slots by the names of the next round: what one calls ``(i + 1) % n``, the next one calls ``i % n``; what it calls ``i``, ``i - 1``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from streamlint.facts.code.counters import count_of, is_counter
from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import ANY, ASIDE, Element, Place
from streamlint.ordering.places.rotation import is_slot
from streamlint.support.memo import memoized
from streamlint.waits.questions import Key, alike

_MOST = 2
"""Slots of a ring that a path goes round; of a larger one, as of an array, only what lies ahead has a name in the next round."""


class Slot(NamedTuple):
    """What an index names: the slot ``offset`` behind that of a counter which is one more in each round, of ``size`` slots that come again;
    a number, or the key of what says it; None where none comes again."""

    counter: Key
    offset: int = 0
    size: int | Key | None = None

    def moved(self, by: int) -> Slot:
        """The slot that lies some behind this one."""
        return self._replace(offset=self._within(self.offset + by))

    def of(self, size: int | Key) -> Slot:
        """The same of a ring."""
        return Slot(self.counter, self.offset, size).moved(0)

    def _within(self, offset: int) -> int:
        return offset % self.size if isinstance(self.size, int) and self.size <= _MOST else offset

    @property
    def key(self) -> Key:
        """The key of an expression for it."""
        sign = "+" if self.offset > 0 else "-"
        moved: Key = (op.BINARY, sign, self.counter, _constant(abs(self.offset)), 3) if self.offset else self.counter
        if self.size is None:
            return moved
        return (op.BINARY, "%", moved, _constant(self.size) if isinstance(self.size, int) else self.size, 3)


Counters = Callable[[Key], Slot | None]
"""The slot of a counter by itself; None for what is none."""


class Begin(NamedTuple):
    """The counter of a loop, the number that its first round has, and the indices that the loop computes."""

    counter: Slot
    start: int
    own: Mapping[Slot, list[Key]]

    @property
    def sizes(self) -> list[int | Key]:
        """The sizes of the rings that are indexed by the counter."""
        sizes = (slot.size for slot in self.own if slot.counter == self.counter.counter)
        return list(dict.fromkeys(size for size in sizes if size is not None))


class Alternation:
    """The slots that take turns in the loops of a function."""

    def next_round(self, function: Function, loop: Loop, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """What is tracked, by the names that the next round has for it."""
        own, counters = self._own(function, loop), partial(self._counter, function, loop)
        apart = frozenset(held for held in tracked if held.place.root[0] == ASIDE)  # by the names of another function
        return apart.union(one for held in tracked - apart for one in as_next(held, counters, own))

    def other_names(self, function: Function, loop: Loop, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """What the next round has a name for, by that: of memory no more, of what orders any slot where it has none. Empty where no memory
        stands at a slot that changes its name."""
        found, changes = set[Tracked](), False
        for held in tracked:
            later = self.next_round(function, loop, frozenset({held}))
            if later != {held}:
                changes = changes or held.kind == BUFFER
                found |= later
            elif held.place.root[0] == ASIDE or not is_slot(held.place):
                found.add(held)
            elif held.kind != BUFFER:
                path = (ANY if isinstance(key, Element) else key for key in held.place.path)
                found.add(held._replace(place=Place(held.place.root, tuple(path))))
        return frozenset(found) if changes else frozenset()

    @memoized
    def _own(self, function: Function, loop: Loop) -> dict[Slot, list[Key]]:
        return _own(function, loop, partial(self._counter, function, loop))

    @memoized
    def _counter(self, function: Function, loop: Loop, key: Key) -> Slot | None:
        return _counter(function, loop, key)

    @memoized
    def _begun(self, function: Function, loop: Loop) -> list[Begin]:
        return list(_begun(function, loop, self._own(function, loop), partial(self._counter, function, loop)))

    def first_round(self, function: Function, loop: Loop, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """What is tracked at constant indices, also by the names that the first round of a loop has for it."""
        begun = self._begun(function, loop)
        own = (held for held in tracked if held.place.root[0] != ASIDE) if begun else ()
        return tracked.union(one for held in own for one in _at_begin(held, begun))

    def names_slot(self, function: Function, block: int, place: Place) -> bool:
        """Whether an index on the way to a place counts the rounds of a loop around a block."""
        loops = list(function.control.around(block))
        keys = [key.key for key in place.path if isinstance(key, Element)] if place.root[0] != ASIDE else []
        return any(slot_of(key, partial(self._counter, function, loop)) for key in keys for loop in loops)

    def takes_turns(self, function: Function, place: Place) -> bool:
        """Whether a slot on the way to a place is one of two in a loop."""
        if place.root[0] == ASIDE:
            return False
        keys = {key.key for key in place.path if isinstance(key, Element)}
        known = (self._own(function, loop) for loop in function.control.loops if keys)
        return any(slot.size == 2 and not keys.isdisjoint(names) for own in known for slot, names in own.items())


def as_next(held: Tracked, counters: Counters, own: dict[Slot, list[Key]] | None = None) -> Iterator[Tracked]:
    """Something tracked by the names that the next round has for it: those of a function's ``own`` expressions, and a plain one."""
    for index, key in enumerate(held.place.path):
        slot = slot_of(key.key, counters) if isinstance(key, Element) else None
        if slot is None:
            continue
        later = slot.moved(-1)
        names = _names(later, later == counters(later.counter), own or {})
        yield from (_at(held, index, name) for name in names)
        if names:
            return
    yield held


def _at(held: Tracked, index: int, name: Key) -> Tracked:
    """Something tracked, with another name for an index on the way to it."""
    root, path = held.place
    return held._replace(place=Place(root, (*path[:index], Element(name), *path[index + 1 :])))


def _names(slot: Slot, is_plain: bool, own: Mapping[Slot, list[Key]]) -> list[Key]:
    """The keys of expressions for a slot: a function's own, and that of one which lies ahead."""
    found = dict.fromkeys(own.get(slot, ()))
    if slot.offset >= 0:
        found[slot.counter if is_plain else slot.key] = None
    return list(found)


def _at_begin(held: Tracked, counters: list[Begin]) -> Iterator[Tracked]:
    """What is tracked at a constant index, by those that count rounds from a number on."""
    for index, key in enumerate(held.place.path):
        constant = key.key if isinstance(key, Element) else None
        slot = slot_of(_constant(constant) if type(constant) is int else constant, _fixed)
        for begin in counters if slot is not None else ():
            assert slot is not None
            mine = begin.counter.moved(slot.offset - begin.start)
            sizes = begin.sizes if slot.size is None else [slot.size]
            slots = [mine, *(mine.of(size) for size in sizes if mine.size is None)]
            names = (name for each in slots for name in _names(each, begin.counter == each, begin.own))
            yield from (_at(held, index, name) for name in dict.fromkeys(names))


def _fixed(key: Key) -> Slot | None:
    """A constant as the slot of a counter that stands still."""
    number = _number(key)
    return None if number is None else Slot((), number)


def slot_of(key: object, counters: Counters) -> Slot | None:
    """The slot that an index names, by the key of its expression."""
    if not isinstance(key, tuple) or not key:
        return None
    found = counters(key)
    if found is not None or len(key) == 1:
        return found
    match key:
        case (op.BINARY, sign, tuple(left), tuple(right), _):
            number, first = _number(right), _number(left)
            if first is not None and sign in ("+", "-"):
                slot = slot_of(right, counters)
                return _after(slot, first) if sign == "+" else _other(slot) if first == 1 else None
            slot = slot_of(left, counters)
            return None if slot is None else _computed(slot, str(sign), number, right)
    return None


def _computed(slot: Slot, sign: str, number: int | None, right: Key) -> Slot | None:
    """What an operator makes of the slot on its left."""
    if sign == "%" and slot.size is None:
        return slot.of(right if number is None else number) if number is None or number > 0 else None
    if number is None:
        return None
    if sign in ("+", "-"):
        return _after(slot, number if sign == "+" else -number)
    if sign == "&" and slot.size is None and number > 0 and number & (number + 1) == 0:
        return slot.of(number + 1)
    return _other(slot) if sign == "^" and number == 1 else None


def _after(slot: Slot | None, by: int) -> Slot | None:
    return slot.moved(by) if slot is not None and slot.size is None else None


def _other(slot: Slot | None) -> Slot | None:
    """The slot of two that another one is not."""
    return slot.moved(1) if slot is not None and slot.size == 2 else None


def _constant(number: int) -> Key:
    return (op.CONST, str(number), 1)


def _number(key: Key) -> int | None:
    return int(key[1]) if key[0] == op.CONST and len(key) > 1 and isinstance(key[1], str) and key[1].isdecimal() else None


def _own(function: Function, loop: Loop, counters: Counters) -> dict[Slot, list[Key]]:
    """The indices that a loop computes, by the slots that they name."""
    found: dict[Slot, list[Key]] = {}
    keys = [alike(function, one[2]) for one in function.by_opcode[op.BINARY] if function.blocks[one] in loop.body]
    for key in dict.fromkeys(keys):
        if (slot := slot_of(key, counters)) is not None:
            found.setdefault(slot, []).append(key)
    return found


def _begun(function: Function, loop: Loop, own: Mapping[Slot, list[Key]], counters: Counters) -> Iterator[Begin]:
    """The counters of a loop that begin with a known number."""
    rounds = [one for opcode in (op.NEXT, op.UNPACK, op.PHI) for one in function.by_opcode[opcode] if function.blocks[one] in loop.body]
    for one in rounds:
        counter = counters((one[2],)) if _leads_to_index(function, one[2]) else None
        count = count_of(function, one) if counter is not None else None
        if counter is not None and count is not None and isinstance(count.start, int):
            yield Begin(counter, count.start, own)


def _leads_to_index(function: Function, register: int, depth: int = 4) -> bool:
    """Whether a number is an index, as it is or computed with, or is handed to a function that may use it as one."""
    for use in function.uses[register]:
        if (use[0] in (op.ITEM, op.ADDRESS_ITEM) and use[4] == register) or use[0] in (op.SET_ITEM, op.CALL, op.INVOKE):
            return True
        if use[0] in (op.BINARY, op.COPY, op.CAST) and depth and _leads_to_index(function, use[2], depth - 1):
            return True
    return False


def _counter(function: Function, loop: Loop, key: Key) -> Slot | None:
    """The slot of what counts the rounds of a loop: a register, or an attribute that a method of its class makes larger."""
    if len(key) > 1:
        counts = (one[2] for one in function.by_opcode[op.ATTR] if key[0] == op.ATTR and function.blocks[one] in loop.body)
        own = (each for each in counts if alike(function, each) == key)
        return Slot(key) if any(is_counter(function, each) for each in own) else None
    register = key[0]
    one = function.definitions[register] if isinstance(register, int) and 0 <= register < len(function.definitions) else None
    if one is None or not isinstance(register, int):
        return None
    if _counts_rounds(function, loop, one):
        return Slot(key)
    return _of_ring(function, loop, one) if one[0] == op.PHI and function.blocks[one] == loop.header else None


def _of_ring(function: Function, loop: Loop, phi: Instruction) -> Slot | None:
    """The slot of what goes round at the end of each round of a loop: ``slot = 1 - slot``, ``turn = (turn + 1) % n``."""
    before = zip(function.phi_order[loop.header], phi[3:], strict=True)
    sizes = set[int | Key]()
    for block, register in before:
        if block not in loop.body:
            continue
        key = alike(function, register)
        for size in (None, 2):
            mine = Slot((phi[2],), size=size)
            slot = slot_of(key, lambda each, mine=mine: mine if each == mine.counter else None)  # type: ignore[misc]
            if slot is not None and slot.size is not None and slot == mine.of(slot.size).moved(1):
                sizes.add(slot.size)
                break
        else:
            return None
    return Slot((phi[2],)).of(sizes.pop()) if len(sizes) == 1 else None


def _counts_rounds(function: Function, loop: Loop, one: Instruction) -> bool:
    """Whether a register is one more in each round of a loop."""
    count = count_of(function, one)
    return count is not None and count.step == 1 and next(function.control.around(function.blocks[one]), None) == loop
