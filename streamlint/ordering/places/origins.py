"""Where a value came from: the container of an element that a loop takes, the generator that has given it, the thread at the other end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, External, Instance, Object, Site
from streamlint.facts.code.stores import Store
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import ANY, Element, Key, Place, Places, register_place
from streamlint.ordering.places.rotation import passed_on, values_of
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers

EACH = "each"
"""The key of an element of a container that is not distinguished from the others."""
YIELDED = "yielded"
"""The key of what an iterator has given last."""
_DEEPEST = 8


class Origins:
    """The origins of values of a program."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = places

    def of(self, function: Function, register: int, path: tuple[Key, ...] = (), depth: int = _DEEPEST) -> Iterator[Place]:
        """The places of the container and of the iterator that a loop has taken a value from."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth == 0:
            return
        if one[0] == op.UNPACK and one[6] == op.NONE:
            yield from self.of(function, one[3], (Element(one[4]), *path), depth - 1)
        elif one[0] == op.COPY:
            yield from self.of(function, one[3], path, depth - 1)
        elif one[0] in (op.ATTR, op.ITEM):
            key = function.text(one[4]) if one[0] == op.ATTR else self.places.element(function, one[4])
            yield from self.of(function, one[3], (key, *path), depth - 1)
        elif one[0] == op.CALL:
            if function.dotted(one[3]) == "next" and len(one) > 5 and self._goes_round(function, one[5], (), depth):
                yield from (place.behind(ANY, *path) for place in self.places.names(function, one[5]))
        elif one[0] == op.NEXT:
            yield from self._of_round(function, one, path, depth)

    def _of_round(self, function: Function, one: Instruction, path: tuple[Key, ...], depth: int) -> Iterator[Place]:
        """The places of what a round of a loop takes."""
        yield register_place(one[3]).behind(YIELDED, *path)
        definition = function.definitions[one[3]]
        if definition is not None and definition[0] == op.ITER:
            if self._goes_round(function, definition[3], path, depth):
                yield register_place(one[3]).behind(ANY, *path)
            yield from self._elements(function, definition[3], path, depth - 1)

    def _goes_round(self, function: Function, register: int, path: tuple[Key, ...], depth: int) -> bool:
        """Whether an iterator gives again what it has given, at the keys that lead into its elements."""
        for maker, one in self.makers(function, register) if depth else ():
            inside = passed_on(maker, one, path)
            if inside is not None:
                return self._goes_round(maker, *inside, depth - 1)
            turning = maker.unit.models.marked("goes-round")
            if any(isinstance(each, External) and each.name in turning for each in self.facts.callees(maker, one)):
                return True
        return False

    def _elements(self, function: Function, register: int, path: tuple[Key, ...], depth: int) -> Iterator[Place]:
        if depth == 0:
            return
        one = function.definitions[register] if register >= 0 else None
        inside = passed_on(function, one, path) or values_of(function, one, path) if one is not None else None
        if inside is not None:
            yield from self._elements(function, *inside, depth - 1)
        else:
            yield from (place.behind(EACH, *path) for place in self.places.names(function, register))

    def inside(self, function: Function, register: int, path: tuple[Key, ...]) -> int | None:
        """The register that a tuple was built from, by the keys that lead to it."""
        for key in path:
            one = function.definitions[register] if register >= 0 else None
            index = key.key if isinstance(key, Element) else None
            if one is None or one[0] != op.BUILD or not isinstance(index, int) or not 0 <= index < len(one) - 4:
                return None
            register = one[4 + index]
        return register

    def call_of(self, function: Function, register: int) -> tuple[Instruction | None, tuple[Key, ...]]:
        """The call whose result a value is taken from, and the keys that lead there."""
        path: tuple[Key, ...] = ()
        one = function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in (op.UNPACK, op.COPY):
            path = (Element(one[4]), *path) if one[0] == op.UNPACK else path
            one = function.definitions[one[3]]
        return (one, path) if one is not None and one[0] in (op.CALL, op.INVOKE) else (None, ())

    def parameters(self, function: Function, register: int, position: int) -> Iterator[Place]:
        """The places of the tensors in an argument that the optimizer in a register was made with: a list of them, or of groups."""
        for maker, one in self.makers(function, register):
            given = argument_registers(maker, one)
            for place in self._listed(maker, given[position][1]) if position < len(given) else ():
                if maker is function or (place.root[0] in ("parameter", "global") and place.path):
                    yield place

    def _listed(self, function: Function, register: int) -> Iterator[Place]:
        """The places of the elements of a list, by its name and by where they were taken from."""
        built = function.definitions[register] if register >= 0 else None
        put = [use[-1] for use in function.uses[register] if use[0] == op.APPEND and use[2] == register]
        for part in (*(built[4:] if built is not None and built[0] == op.BUILD else ()), *put):
            group = function.definitions[part]
            if group is not None and group[0] == op.DICT:
                for key, value in zip(group[3::2], group[4::2], strict=False):
                    if key != op.NONE and function.constant(key) == "params":
                        yield from self._listed(function, value)
                return
            yield from self.of(function, part)
        if self._learns(function, register):
            yield from (place.behind(EACH) for place in self.places.names(function, _listed_in(function, register)))

    def makers(self, function: Function, register: int) -> Iterator[tuple[Function, Instruction]]:
        """The calls that may have made an object: in the function, or for an attribute of the receiver."""
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            return
        if one[0] in (op.CALL, op.INVOKE):
            yield function, one
        owner = function.method.owner if function.method is not None else None
        if one[0] == op.ATTR and owner is not None and self.places.of(function, one[3]) == Place(("parameter", 0)):
            for store in owner.own_stores.get(function.text(one[4]), ()):
                definition = store.function.definitions[store.value]
                if definition is not None and definition[0] in (op.CALL, op.INVOKE):
                    yield store.function, definition

    def _learns(self, function: Function, register: int) -> bool:
        """Whether the elements of a list are tensors with gradients, as far as can be seen: an optimizer leaves others alone."""
        put = [use[-1] for use in function.uses[register] if use[0] in (op.APPEND, op.INVOKE) and register in use[2:4]]
        registers = {each for one in put for each in self.transfer.shared(function, one)}
        calls = [function.definitions[each] for each in registers if each >= 0]
        names = {call.name for one in calls if one is not None for call in self.transfer.libraries(function, one)}
        return not put or any(name.endswith((".requires_grad_", ".Parameter")) for name in names)

    # --- modules

    def is_of_host_module(self, function: Function, register: int, depth: int = _DEEPEST) -> bool:
        """Whether a value is a parameter of a module that was moved to the host."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth == 0:
            return False
        if one[0] in (op.ITEM, op.UNPACK, op.NEXT, op.ITER, op.COPY):
            return self.is_of_host_module(function, one[3], depth - 1)
        if one[0] == op.ATTR:
            return any(self.is_of_host_module(store.function, store.value, depth - 1) for store in _own_stores(function, one))
        if one[0] == op.CALL:
            is_container = function.dotted(one[3]) in ("dict", "list", "tuple") and len(one) > 5
            return is_container and self.is_of_host_module(function, one[5], depth - 1)
        for call in self.transfer.modelled(function, one) if one[0] == op.INVOKE else ():
            if call.row.effect == "module_to":
                return call.row.get("to") == "host"
            if call.row.effect in ("view", "same"):
                return self.is_of_host_module(function, one[3], depth - 1)
        return False

    # --- queues between threads

    def taken(self, function: Function, register: int) -> Iterator[Site]:
        """Where threads take elements out of a container that a register holds."""
        held = {value for value in self.transfer.values(function, register) if isinstance(value, Container)}
        for other in self._thread_functions if held else ():
            for one in other.by_opcode[op.INVOKE] if other is not function else ():
                its = self.transfer.values(other, one[3]) if other.text(one[4]) in other.known("takes") else ()
                if any(self._is_same(mine, each) for mine in held for each in its):
                    yield Site(other, one)

    @cached_property
    def _thread_functions(self) -> list[Function]:
        """The functions that threads of the program run."""
        starts = (
            edge for call in self.transfer.sites({"thread", "start"}) for edge in self.transfer.edges(call.function, call.instruction)
        )
        return list(dict.fromkeys(edge.callee for edge in starts if edge.is_elsewhere))

    def _is_same(self, mine: Container, its: Object) -> bool:
        """Whether two containers may be one: made at one place, by methods of objects that may be one."""
        if not isinstance(its, Container) or (mine.frame.function, mine.instruction) != (its.frame.function, its.instruction):
            return False
        first, second = mine.frame.receiver, its.frame.receiver
        if not isinstance(first, Instance) or not isinstance(second, Instance):
            return True
        derives = self.facts.hierarchy.derives
        return any(
            one.definition is other.definition or (not other.exact and derives(one.definition, other.definition))
            for one, other in ((first, second), (second, first))
        )

    def blocks(self, function: Function, one: Instruction) -> bool:
        """Whether a call waits for another thread, which may tell it that work is done."""
        return one[0] in (op.CALL, op.INVOKE) and any(call.row.effect == "block" for call in self.transfer.modelled(function, one))


def _listed_in(function: Function, register: int) -> int:
    """The register of the container whose elements a register lists."""
    built = function.definitions[register] if register >= 0 else None
    values = values_of(function, built, ()) if built is not None else None
    return register if values is None else values[0]


def _own_stores(function: Function, one: Instruction) -> Iterable[Store]:
    """What a method's class assigns to the attribute that an instruction reads."""
    owner = function.method.owner if function.method is not None else None
    return owner.own_stores.get(function.text(one[4]), ()) if owner is not None else ()
