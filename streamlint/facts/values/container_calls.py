"""What containers of the language hold and give back, and what their methods do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from streamlint.facts.code.objects import (
    Constant,
    Container,
    External,
    Group,
    Instance,
    Key,
    Object,
    Site,
)
from streamlint.facts.values.frames import Arguments, Frame
from streamlint.facts.values.keyed import key_at
from streamlint.facts.values.library import Library
from streamlint.facts.values.nodes import Keyed, Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

_OPERATORS = frozenset({"__getitem__", "__contains__", "__len__"})
"""What operators call of ``dict``, which a class that derives from it has as well."""
DEEPEST_VIEW = 3
"""Views of dicts that are taken of one another."""


class ContainerCalls(Library):
    """Value flow through the methods of containers."""

    def _container_method(self, callee: External, name: str, arguments: Arguments, target: Node) -> None:
        value = callee.receiver
        if value is None:  # one of many containers
            self.unknown(target, "budget")
            return
        known = self.models.known
        if name in known("gives-values", "gives-entries"):
            self._view_of(value, name, target)
        elif name in known("whole"):
            self.solver.add(target, value)
        elif name in known("takes", "shows"):
            self._taken(value, name, arguments, target)
            if isinstance(value, Container) and value.kind == "variable" and arguments.positional:
                self.solver.edge(arguments.positional[0], target)  # the default
            if name in known("looks-up", "pops-key") and len(arguments.positional) > 1:
                self.solver.edge(arguments.positional[1], target)
        else:
            self.solver.add(target, self.scalar)

    def _taken(self, value: Object, name: str, arguments: Arguments, target: Node) -> None:
        """A method gives an element: of a dict or of keyword arguments the one under the key that it names."""
        site = arguments.site
        if name not in self.models.known("looks-up", "pops-key") or not arguments.positional or self.keyed(value) is None:
            self.element(value, None, target, site)
            return

        def named(key: Object) -> None:
            word = key.value if isinstance(key, Constant) else None
            self.element(value, word if isinstance(word, str) else None, target, site)

        self.solver.when(arguments.positional[0], named)

    def _is_of_mapping(self, callee: External) -> bool:
        name = callee.name.rpartition(".")[2]
        return name in _OPERATORS or name in self.models.known("looks-up", "pops-key", "gives-values", "gives-entries", "gives-keys")

    def _of_mapping(self, value: Instance, name: str, arguments: Arguments, target: Node) -> None:
        """A method of ``dict`` of an object of the program whose class derives from it."""
        keyed = self.keyed(value)
        assert keyed is not None
        if name in self.models.known("gives-values", "gives-entries"):
            self._view_of(value, name, target)
            return
        if (name != "__getitem__" and name not in self.models.known("looks-up", "pops-key")) or not arguments.positional:
            self.solver.add(target, self.scalar)
            return

        def named(key: Object) -> None:
            word = key.value if isinstance(key, Constant) else None
            self.ask(keyed, word if isinstance(word, str) else None, target, arguments.site)

        self.solver.when(arguments.positional[0], named)
        for default in arguments.positional[1:2]:
            self.solver.edge(default, target)

    def _view_of(self, value: Object, name: str, target: Node) -> None:
        """The values of a dict, or its pairs."""
        depth = value.depth + 1 if isinstance(value, Group) else 1
        if depth > DEEPEST_VIEW:
            self.unknown(target, "budget")
            return
        entries = self._entries_in_order(value)
        kind = "tuple" if entries else "iterable"
        if name in self.models.known("gives-entries"):
            keys = value.nodes[1] if isinstance(value, Group) and value.kind == "mapping" else self.holding(self.scalar)
            pairs = (self.objects(Group, "tuple", (keys, held), depth) for held in entries or [self.any_element(value)])
            self.solver.add(target, self.objects(Group, kind, tuple(map(self.holding, pairs)), depth))
        else:
            self.solver.add(target, self.objects(Group, kind, tuple(entries or [self.any_element(value)]), depth))

    def _entries_in_order(self, value: Object) -> list[Node]:
        """What a dict holds under each of its keys, where these are written out and nothing changes it."""
        if not isinstance(value, Container) or value.instruction[0] != op.DICT or (keyed := self.keyed(value)) is None:
            return []
        keys = [key_at(value.frame.function, register) for register in value.instruction[3::2]]
        if not all(isinstance(key, (str, int)) for key in keys) or len(set(keys)) < len(keys) or self.container_uses(value):
            return []
        return [self._entry(keyed, key).node for key in keys]

    def pair(self, first: Object, second: Node) -> Object:
        return self.objects(Group, "tuple", (self.holding(first), second))

    def _contents(self, value: Container, key: Key | None, node: Node) -> None:
        super()._contents(value, key, node)
        if value.kind == "variable":
            for default in self.arguments(value.frame, value.instruction).keywords.values():
                self.solver.edge(default, node)
        if value.kind == "dict" and self._makes_what_it_lacks(value):
            self._make_lacked(value, node)
        if value.kind == "modules" and self.holds(value) == "chain" and (key is None or isinstance(key, int)):
            given = self.arguments(value.frame, value.instruction).positional
            for source in given if key is None else given[key : key + 1 or None]:
                self.solver.edge(source, node)

    def given_by_dict(self, value: Container, keyed: Keyed) -> None:
        super().given_by_dict(value, keyed)
        if self._makes_what_it_lacks(value):
            self.give(keyed, None, Node(lambda node: self._make_lacked(value, node)))

    def _make_lacked(self, value: Container, node: Node) -> None:
        """What the first argument of a ``defaultdict`` gives arrives at a node."""
        arguments = self.arguments(value.frame, value.instruction)
        for factory in arguments.positional[:1]:
            self.solver.when(factory, lambda called: self._make_one(called, value, node))

    def kind_made_by(self, factory: External) -> str | None:
        """The kind of the container that a function of the language makes; None of any other function."""
        raise NotImplementedError

    def _make_one(self, factory: Object, value: Container, node: Node) -> None:
        """What a factory gives for a key arrives at a node: a container of the language stands for all that it gives."""
        kind = self.kind_made_by(factory) if isinstance(factory, External) else None
        if kind is not None:
            self.solver.add(node, self.container(kind, value.frame, value.instruction))
        else:
            self.call(factory, self.no_arguments(self.arguments(value.frame, value.instruction).site), node)

    def is_lacked(self, value: Container) -> bool:
        """Whether a container is what the factory of another one gives, by whose instruction it is known."""
        return value.kind != "dict" and self._makes_what_it_lacks(value)

    def copied_mappings(self, value: Container, arguments: Arguments) -> Sequence[Node]:
        return arguments.positional[1:2] if self._makes_what_it_lacks(value) else super().copied_mappings(value, arguments)

    def of_factory(self, value: Instance, site: Site | None, target: Node) -> None:
        """An object whose class derives from ``defaultdict``: what the factory makes arrives that its constructor hands on."""
        for method in (each for one in self.hierarchy.order(value.definition) for each in one.methods.get("__init__", ())):
            frame = self.base(method)
            for one in method.by_opcode[op.INVOKE]:
                if method.text(one[4]) == "__init__":
                    self.solver.when(self.callee(frame, one), partial(self._wrapped_call, frame, one, site, target))

    def _wrapped_call(self, frame: Frame, one: Instruction, site: Site | None, target: Node, callee: Object) -> None:
        if isinstance(callee, External) and callee.name == "collections.defaultdict.__init__":
            for factory in self.arguments(frame, one).positional[:1]:
                self.solver.when(factory, lambda called: self.call(called, self.no_arguments(site), target))

    def _makes_what_it_lacks(self, value: Container) -> bool:
        """Whether a container is a ``defaultdict``: its first argument is called for each key that it lacks."""
        if value.instruction[0] not in (op.CALL, op.INVOKE):
            return False
        callees = self.callee(value.frame, value.instruction).values
        return any(isinstance(callee, External) and callee.name == "collections.defaultdict" for callee in callees)

    def copied_into(self, value: Container) -> list[Node]:
        if value.instruction[0] not in (op.CALL, op.INVOKE) or value.kind == "variable":
            return []
        arguments = self.arguments(value.frame, value.instruction)
        if value.kind == "modules" and self.holds(value) == "chain":
            return arguments.starred
        keywords = () if value.kind in ("list", "tuple") else arguments.keywords.values()  # ``deque(held, maxlen=8)``
        return [*self.copied_mappings(value, arguments), *keywords]
