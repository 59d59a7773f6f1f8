"""What containers hold: the elements that they are made with, and those that are put in later."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.declared import Declared
from streamlint.facts.frames import Frame
from streamlint.facts.functions import Function
from streamlint.facts.nodes import Node
from streamlint.facts.objects import Container, Key, Object, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

MUTATORS = {
    "append": 0, "appendleft": 0, "add": 0, "put": 0, "put_nowait": 0, "push": 0, "insert": 1, "setdefault": 1,
    "extend": -1, "update": -1, "extendleft": -1,
}  # fmt: skip
"""Methods that store an argument in a container: its position, or -1 for one whose elements are stored."""


class Containers(Declared):
    """Value flow of containers."""

    def element(self, value: Object, key: Key | None, target: Node, site: Site | None) -> None:
        """The element under a key, or all of them, of an object arrive at a node."""
        raise NotImplementedError

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
        if one[0] == op.DICT:
            self._dict_contents(frame, one, key, node)
        elif one[0] == op.BUILD:
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
        for index, register in enumerate(one[4:]):
            if index in starred:
                self.each_element(self.register(frame, register), None, node)
            elif key is None or key == index or (isinstance(key, int) and (key < 0 or starred)):
                if isinstance(key, int) and key < 0 and not starred and index != len(one) - 4 + key:
                    continue
                self.solver.edge(self.register(frame, register), node)

    def _dict_contents(self, frame: Frame, one: Instruction, key: Key | None, node: Node) -> None:
        for index in range(3, len(one), 2):
            name, value = one[index], one[index + 1]
            if name == op.NONE:
                self.each_element(self.register(frame, value), key, node)
            elif key is None or (known := frame.function.constant(name)) is None or known == key:
                self.solver.edge(self.register(frame, value), node)

    def _mutations(self, value: Container, key: Key | None, node: Node) -> None:
        """What is put into a container behind its making, wherever it goes."""
        for function, use in self.container_uses(value):
            frame = value.frame if function is value.frame.function else self.base(function)
            for receiver, name, register, spreads in _put(function, use):
                if key is not None and name is not None and name != key:
                    continue
                source = self.register(frame, register)

                def arrived(held: Object, source: Node = source, spreads: bool = spreads) -> None:
                    if not isinstance(held, Container) or held.instruction is not value.instruction:
                        return
                    if spreads:
                        self.each_element(source, key, node)
                    else:
                        self.solver.edge(source, node)

                self.solver.when(self.register(frame, receiver), arrived)

    def container_uses(self, value: Container) -> list[tuple[Function, Instruction]]:
        """The instructions that may change a container."""
        raise NotImplementedError


def _put(function: Function, use: Instruction) -> Iterator[tuple[int, Key | None, int, bool]]:
    """What an instruction puts into a container: the container's register, the key, the register of what is put, whether its elements."""
    if use[0] == op.SET_ITEM:
        yield use[2], function.constant(use[3]), use[4], False
    elif use[0] == op.APPEND:
        yield use[2], None, use[3], False
    elif use[0] == op.PUT:
        yield use[2], function.constant(use[3]), use[4], False
    elif use[0] == op.INPLACE:
        yield use[4], None, use[5], True
    elif use[0] == op.INVOKE and (position := MUTATORS.get(function.text(use[4]))) is not None:
        arguments = use[6:]
        if position >= 0 and len(arguments) > position:
            key = function.constant(arguments[0]) if position and function.text(use[4]) == "setdefault" else None
            yield use[3], key, arguments[position], False
        elif position < 0 and arguments:
            yield use[3], None, arguments[0], True
