"""What containers hold: the elements that they are made with, and those that are put in later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import repeats, with_kinds
from streamlint.facts.code.objects import (
    Container,
    External,
    Group,
    Instance,
    Key,
    Name,
    Object,
    Rest,
    SuperObject,
    Varargs,
    may_be_under,
)
from streamlint.facts.code.passing import is_stored, put_by_function
from streamlint.facts.values.declared import Declared
from streamlint.facts.values.frames import Frame
from streamlint.facts.values.keyed import key_at
from streamlint.facts.values.nodes import Keyed, Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op


class Containers(Declared):
    """Value flow of containers."""

    def each_element(self, node: Node, key: Key | None, target: Node) -> None:
        """The elements of all that a node holds arrive at another one."""
        self.solver.when(node, lambda held: self.element(held, key, target, target.site))

    def contained(self, value: Container, key: Key | None) -> Node:
        """The elements of a container, or the one under a key."""
        place = (value, key)
        found = self._contained.get(place)
        if found is None:
            found = self._contained[place] = Node(lambda node: self._contents(value, key, node))
        return found

    def _contents(self, value: Container, key: Key | None, node: Node) -> None:
        frame, one = value.frame, value.instruction
        if one[0] == op.BUILD:
            self._built_contents(frame, one, key, node)
        else:
            for source in self.copied_into(value):
                self.each_element(source, key, node)
        self._mutations(value, key, node)

    def copied_into(self, value: Container) -> list[Node]:
        """The iterables that a container was made from by a call."""
        raise NotImplementedError

    def _built_contents(self, frame: Frame, one: Instruction, key: Key | None, node: Node) -> None:
        kind = frame.function.unit.ir.constants[one[3]]
        starred: tuple[int, ...] = kind[1] if isinstance(kind, tuple) else ()
        if any(repeats(frame.function, use) for use in frame.function.uses.get(one[2], ())):
            key = None  # ``[None] * count`` has its elements anywhere
        for index, register in enumerate(one[4:]):
            if not _may_be_at(index, key, starred):
                continue
            if index in starred:
                self.each_element(self.register(frame, register), None, node)
            else:
                self.solver.edge(self.register(frame, register), node)

    def sliced(self, value: Object, ends: slice | None, target: Node) -> None:
        """A slice of an object arrives at a node: of a container another one, with the same elements where its ends are written out."""
        if isinstance(value, Varargs) and ends is not None and (ends.start or 0) >= 0 and ends.stop is None:
            self.solver.add(target, self.objects(Varargs, value.arguments, value.first + (ends.start or 0), value.named))
        elif isinstance(value, Container) and ends is not None and value.instruction[0] == op.BUILD and not self._is_spread(value):
            places = range(len(value.instruction) - 4)[ends]
            self.solver.add(target, self.objects(Group, "tuple", tuple(self.contained(value, place) for place in places)))
        elif isinstance(value, (Container, Varargs, Rest)):
            self.solver.add(target, self.objects(Group, "iterable", (self.any_element(value),)))
        elif isinstance(value, Group) and value.kind != "mapping":
            self.solver.add(target, value)
        else:
            self.element(value, None, target, target.site)

    def _is_spread(self, value: Container) -> bool:
        """Whether a container that is written out has the elements of others in it, or is repeated."""
        function, one = value.frame.function, value.instruction
        return isinstance(function.unit.ir.constants[one[3]], tuple) or any(repeats(function, use) for use in function.uses.get(one[2], ()))

    def _mutations(self, value: Container, key: Key | None, node: Node) -> None:
        """What is put into a container behind its making."""

        def put(name: Name, source: Node, spreads: bool) -> None:
            if spreads:
                self.each_element(source, key, node)
            elif may_be_under(name, key):
                self.solver.edge(source, node)

        self._when_put(value, put)

    def given_by_dict(self, value: Container, keyed: Keyed) -> None:
        super().given_by_dict(value, keyed)

        def put(name: Name, source: Node, spreads: bool) -> None:
            if spreads:
                self.link(self.keyed_of_node(source), keyed)
            else:
                self.give(keyed, name, source)

        self._when_put(value, put)

    def given_by_calls(self, value: Rest, keyed: Keyed) -> None:
        super().given_by_calls(value, keyed)
        self._when_put(value, lambda name, source, spreads: None if spreads else self.give(keyed, name, source))

    def given_by_methods(self, value: External, receiver: Instance, keyed: Keyed) -> None:
        for frame in map(self.base, self.methods_of(receiver)):
            for use in frame.function.by_opcode[op.SET_ITEM]:
                if (key := frame.function.constant(use[3])) is not None:
                    give = partial(self.give, keyed, key, self.register(frame, use[4]))
                    self.solver.when(self.register(frame, use[2]), partial(self._if_it, value, give))

    def given_to_itself(self, value: Instance, keyed: Keyed) -> None:
        for frame in map(self.base, self.methods_of(value)):
            for receiver, key, register in _puts(frame.function):
                constant = frame.function.constant(key)
                put = partial(self.give, keyed, constant if isinstance(constant, (str, int)) else None, self.register(frame, register))
                self.solver.when(self.register(frame, receiver), partial(self._if_of_class, value, put))

    def methods_of(self, value: Instance) -> dict[Function, None]:
        """The methods of an object's class and its bases."""
        return {method: None for one in self.hierarchy.order(value.definition) for each in one.methods.values() for method in each}

    def _if_of_class(self, value: Instance, action: Callable[[], None], held: Object) -> None:
        held = held.receiver if isinstance(held, SuperObject) else held
        derives = self.hierarchy.derives
        if isinstance(held, Instance) and (derives(held.definition, value.definition) or derives(value.definition, held.definition)):
            action()

    def _if_it(self, value: Object, action: Callable[[], None], held: Object) -> None:
        if held is value:
            action()

    def _when_put(self, value: Container | Rest, action: Callable[[Name, Node, bool], None]) -> None:
        """Run an action for what is put into a container, wherever it goes: the key, the node, and whether its elements are."""
        for function, use in self.container_uses(value):
            frame = value.frame if function is value.frame.function else self.base(function)
            for receiver, name, register, spreads in put_by(function, use):
                self.solver.when(
                    self.register(frame, receiver),
                    partial(self._if_same, value, partial(action, name, self.register(frame, register), spreads)),
                )

    def _if_same(self, value: Container | Rest, action: Callable[[], None], held: Object) -> None:
        if isinstance(value, Rest):
            is_same = held is value or isinstance(held, Varargs)
        else:
            is_same = isinstance(held, Container) and held.instruction is value.instruction and held.kind == value.kind
        if is_same:
            action()

    def is_lacked(self, value: Container) -> bool:
        """Whether a container is what the factory of another one gives, by whose instruction it is known."""
        raise NotImplementedError

    def container_uses(self, value: Container | Rest) -> list[tuple[Function, Instruction]]:
        """The instructions that may change a container, or what holds the rest of a function's arguments."""
        raise NotImplementedError


def put_by(function: Function, use: Instruction) -> Iterator[tuple[int, Name, int, bool]]:
    """What an instruction puts into a container: the container's register, the key, the register of what is put, whether its elements."""
    if use[0] in (op.SET_ITEM, op.PUT):
        mapping = mapping_of_pair(function, use[3], use[4])
        yield use[2], key_at(function, use[3]), use[4] if mapping == op.NONE else mapping, mapping != op.NONE
    elif use[0] == op.SET_ATTR:
        yield use[2], function.text(use[3]), use[4], False
    elif use[0] == op.APPEND:
        yield use[2], None, use[3], False
    elif use[0] == op.INPLACE:
        yield use[4], None, use[5], True
    elif use[0] in (op.CALL, op.INVOKE) and (given := put_by_function(function, use)) is not None:
        yield given[0], None, given[1], False
    elif is_stored(function, use):
        yield from _put_by_method(function, use)


def _put_by_method(function: Function, use: Instruction) -> Iterator[tuple[int, Name, int, bool]]:
    """The same of a method of a container."""
    if function.invokes(use, "extends"):  # ``held.update(other, name=value)``
        given = list(with_kinds(function, use[6:], use[5]))
        yield from ((use[3], kind, register, False) for register, kind in given if isinstance(kind, str))
        yield from [(use[3], None, register, True) for register, kind in given if not isinstance(kind, str)][:1]
        return
    position = int(function.invokes(use, "puts-second"))
    if len(use) > 6 + position:
        key = key_at(function, use[6]) if function.invokes(use, "puts-if-absent") else None
        yield use[3], key, use[6 + position], False


def mapping_of_pair(function: Function, key: int, value: int) -> int:
    """The mapping over whose pairs a loop runs that puts each value under its own name again; NONE where there is none."""
    first, second = (function.definitions[each] if each >= 0 else None for each in (key, value))
    if first is None or second is None or (first[0], second[0]) != (op.UNPACK, op.UNPACK) or first[3:] != (second[3], 0, 2, op.NONE):
        return op.NONE
    steps: list[Instruction | None] = [second]
    while (one := steps[-1]) is not None and one[0] in (op.UNPACK, op.NEXT, op.ITER):
        steps.append(function.definitions[one[3]])
    kinds = [step[0] for step in steps if step is not None]
    is_pair = kinds == [op.UNPACK, op.NEXT, op.ITER, op.INVOKE] and second[4:] == (1, 2, op.NONE)
    return one[3] if is_pair and one is not None and len(one) == 6 and function.invokes(one, "gives-entries") else op.NONE


def _may_be_at(index: int, key: Key | None, starred: tuple[int, ...]) -> bool:
    """Whether an operand of a container that is written out may be the element at a key: before the first list that is spread each is at
    its place."""
    if not isinstance(key, int):
        return key is None or index in starred
    return index == key if not starred or key < starred[0] else index >= starred[0]


def _puts(function: Function) -> Iterator[tuple[int, int, int]]:
    """What a function puts somewhere by key (``self[name] = kind``, ``super().__setitem__(name, kind)``): receivers, keys and values."""
    yield from ((one[2], one[3], one[4]) for one in function.by_opcode[op.SET_ITEM])
    for one in function.by_opcode[op.INVOKE]:
        if function.text(one[4]) == "__setitem__" and len(one) == 8:
            yield one[3], one[6], one[7]


def ends_of(function: Function, cut: Instruction) -> slice | None:
    """The ends of a slice of elements one by one, where both are written out as numbers; None of any other."""
    numbers = [_number(function, register) if register >= 0 else None for register in cut[3:5]]
    is_plain = cut[5] < 0 and all(register < 0 or number is not None for register, number in zip(cut[3:5], numbers, strict=True))
    return slice(*numbers) if is_plain else None


def _number(function: Function, register: int) -> int | None:
    """The whole number, with its sign, that a register is known to hold."""
    one = function.definitions[register]
    is_negative = one is not None and one[0] == op.UNARY and function.text(one[3]) == "-"
    number = function.constant(one[4] if is_negative and one is not None else register)
    return None if not isinstance(number, int) else -number if is_negative else number
