"""What dicts and ``**kwargs`` hold, by key: each key that something is given for is passed on from one to those that spread it.

Who asks for a key gets what is given for it, and what is given for keys that are not known. The keys that are given flow, not those that
are asked for: a thousand functions that hand ``**kwargs`` on to one another cost as much as the arguments that callers name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import (
    Activation,
    Affixes,
    Container,
    External,
    Group,
    Instance,
    Key,
    Name,
    Object,
    Rest,
    Site,
    Varargs,
    may_be_under,
)
from streamlint.facts.values.frames import Arguments, Frame
from streamlint.facts.values.joins import Joins
from streamlint.facts.values.nodes import Entry, Keyed, Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

_NONE: frozenset[str] = frozenset()
_MAPPINGS = frozenset({"dict", "OrderedDict", "collections.OrderedDict", "UserDict", "collections.UserDict"})
"""Classes of the language that hold elements by key."""


class KeyedFlow(Joins):
    """Value flow of what is known by keys."""

    def give(self, keyed: Keyed, key: Name, source: Node, site: Site | None = None) -> None:
        """Something is given for a key."""
        entry = self._entry(keyed, key)
        if source in entry.given:
            return
        is_new = not entry.given
        entry.given[source] = site
        if entry.begun:
            self.solver.edge(source, entry.node, site)
        if is_new:
            if keyed.whole is not None:
                self.solver.edge(entry.node, keyed.whole)
            for target, without in keyed.links:
                self._hand_on(target, without, key, entry)

    def _entry(self, keyed: Keyed, key: Name) -> Entry:
        found = keyed.entries.get(key)
        if found is None:
            found = keyed.entries[key] = entry = Entry()
            entry.node = Node(lambda node: self._begun(entry))
            for asked, targets in list(keyed.asked.items()) if isinstance(key, Affixes) else ():
                for target, site in list(targets.items()) if may_be_under(key, asked) else ():
                    self.solver.edge(entry.node, target, site)
        return found

    def _begun(self, entry: Entry) -> None:
        entry.begun = True
        for source, site in entry.given.items():
            self.solver.edge(source, entry.node, site)

    def _hand_on(self, target: Keyed, without: frozenset[str], key: Name, entry: Entry) -> None:
        if key not in without:
            self.solver.later(lambda: self.give(target, key, entry.node))

    def link(self, source: Keyed, target: Keyed, without: frozenset[str] = _NONE) -> None:
        """What is given to one is given to another, but for some keys."""
        if source is target or (target, without) in source.links:
            return
        source.links[target, without] = None
        for key, entry in list(source.entries.items()):
            if entry.given:
                self._hand_on(target, without, key, entry)

    def ask(self, keyed: Keyed, key: Key | None, target: Node, site: Site | None = None) -> None:
        """What is given for a key arrives at a node; for None, all."""
        if key is not None:
            self.solver.edge(self._entry(keyed, key).node, target, site)
            self.solver.edge(self._entry(keyed, None).node, target, site)
            for each in _fitting(keyed, key):
                self.solver.edge(self._entry(keyed, each).node, target, site)
            keyed.asked.setdefault(key, {})[target] = site
            return
        if keyed.whole is None:
            keyed.whole = Node(None)
            for entry in list(keyed.entries.values()):
                if entry.given:
                    self.solver.edge(entry.node, keyed.whole)
        self.solver.edge(keyed.whole, target, site)

    def when_absent(self, source: Node, key: Key, action: Callable[[], None]) -> None:
        """Run an action if what a node holds is known, and nothing is given in it for a key, nor for one that is not known."""
        keyed = self.keyed_of_node(source)
        self.ask(keyed, key, Node(None))

        def decided() -> None:
            entries = (keyed.entries.get(one) for one in (key, None, *_fitting(keyed, key)))
            if source.values and not any(entry is not None and entry.given for entry in entries):
                action()

        self.solver.at_last(decided)

    # --- whose

    def keyed(self, value: Object) -> Keyed | None:
        """The entries of an object; None for what has none by key."""
        found = self._keyed.get(value)
        if found is None and self._is_keyed(value):
            found = self._keyed[value] = Keyed()
            if isinstance(value, Varargs):
                self._given_by_call(value, found)
            elif isinstance(value, Rest):
                self.given_by_calls(value, found)
            elif isinstance(value, Container):
                self.given_by_dict(value, found)
            elif isinstance(value, External) and isinstance(value.receiver, Instance):
                self.given_by_methods(value, value.receiver, found)
            elif isinstance(value, Instance):
                self.given_to_itself(value, found)
        return found

    def _is_keyed(self, value: Object) -> bool:
        if isinstance(value, Rest):
            return value.frame.function.code.parameters[value.index].kind == "double"
        if isinstance(value, External):
            return isinstance(value.receiver, Instance)
        if isinstance(value, Instance):
            return not _MAPPINGS.isdisjoint(self.hierarchy.libraries(value.definition))
        return value.named is not None if isinstance(value, Varargs) else isinstance(value, Container) and value.kind == "dict"

    def keyed_of_node(self, node: Node) -> Keyed:
        """The entries of all that a node holds. The elements of what has none by key may be under each."""
        found = self._keyed_of_nodes.get(node)
        if found is None:
            found = self._keyed_of_nodes[node] = keyed = Keyed()
            self.solver.when(node, lambda value: self._feed(value, keyed))
        return found

    def _feed(self, value: Object, keyed: Keyed) -> None:
        own = self.keyed(value)
        if own is not None:
            self.link(own, keyed)
        else:
            self.give(keyed, None, self.any_element(value))

    def any_element(self, value: Object) -> Node:
        """A node for all elements of an object."""
        found = self._all_nodes.get(value)
        if found is None:
            found = self._all_nodes[value] = Node(lambda node: self.element(value, None, node, None))
        return found

    def element(self, value: Object, key: Key | None, target: Node, site: Site | None) -> None:
        """The element under a key, or all of them, of an object arrive at a node."""
        raise NotImplementedError

    def _given_by_call(self, value: Varargs, keyed: Keyed) -> None:
        arguments = value.arguments
        without = value.named or _NONE
        for name, node in arguments.keywords.items():
            if name not in without:
                self.give(keyed, name, node, arguments.site)
        for node in arguments.double:
            self.link(self.keyed_of_node(node), keyed, without)

    def given_by_calls(self, value: Rest, keyed: Keyed) -> None:
        """The arguments by name of each call of a function, and what it puts beside them."""
        self.solver.when(self.rest_held(value), lambda one: self._given_by_call(one, keyed) if isinstance(one, Varargs) else None)

    def arguments(self, frame: Frame, instruction: Instruction) -> Arguments:
        """The arguments of a call instruction."""
        raise NotImplementedError

    def rest_held(self, value: Rest) -> Node:
        """A node for the arguments behind the last parameter, or those by names, of each call of a function."""
        raise NotImplementedError

    def given_by_dict(self, value: Container, keyed: Keyed) -> None:
        """What a dict is made with, and what is put into it."""
        frame, one = value.frame, value.instruction
        if one[0] == op.DICT:
            self._given_by_display(frame, one, keyed)
        elif one[0] in (op.CALL, op.INVOKE):
            arguments = self.arguments(frame, one)
            for name, node in arguments.keywords.items():
                self.give(keyed, name, node)
            for node in self.copied_mappings(value, arguments):
                self.solver.when(node, lambda held: self._copied(held, keyed))
            for node in arguments.double:
                self.link(self.keyed_of_node(node), keyed)

    def _copied(self, value: Object, keyed: Keyed) -> None:
        """The entries of a mapping, or the second part of each pair: ``dict(zip(names, parts))``."""
        is_of_pairs = isinstance(value, Activation) or (isinstance(value, Container) and value.kind != "dict")
        if is_of_pairs or (isinstance(value, Group) and value.kind != "mapping"):
            pairs = self.any_element(value)
            self.give(keyed, None, Node(lambda node: self.solver.when(pairs, lambda one: self.element(one, 1, node, None))))
        elif isinstance(value, Instance) and self.keyed(value) is None:
            for name in self.attributes(value):
                self.give(keyed, name, Node(partial(self._member, value, name)))
        else:
            self._feed(value, keyed)

    def _member(self, value: Instance, name: str, target: Node) -> None:
        self.member(value, name, target, None)

    def member(self, value: Object, name: str, target: Node, site: Site | None) -> None:
        """A member of an object arrives at a node."""
        raise NotImplementedError

    def attributes(self, value: Instance) -> Iterable[str]:
        """The names of what objects of a class hold themselves: ``vars(value)``."""
        raise NotImplementedError

    def given_by_methods(self, value: External, receiver: Instance, keyed: Keyed) -> None:
        """What the methods of a class put, by key, into an attribute that a library's class gives it: ``self.state[p]["count"] = …``."""
        raise NotImplementedError

    def given_to_itself(self, value: Instance, keyed: Keyed) -> None:
        """What the methods of a class that derives from ``dict`` put into the object itself."""
        raise NotImplementedError

    def copied_mappings(self, value: Container, arguments: Arguments) -> Sequence[Node]:
        """The arguments whose entries a dict that is made by a call begins with."""
        return arguments.positional[:1]

    def _given_by_display(self, frame: Frame, one: Instruction, keyed: Keyed) -> None:
        for index in range(3, len(one), 2):
            name, value = one[index], self.register(frame, one[index + 1])
            if name == op.NONE:
                self.link(self.keyed_of_node(value), keyed)
            else:
                self.give(keyed, key_at(frame.function, name), value)


def _fitting(keyed: Keyed, key: Key) -> list[Affixes]:
    """The keys that are put together of which a constant may be one."""
    return [each for each in keyed.entries if isinstance(each, Affixes) and each.fits(key)]


def key_at(function: Function, register: int) -> Name:
    """The constant that a key is, or what it begins and ends with; None where that is not known."""
    one = function.definitions[register] if register >= 0 else None
    ends: tuple[object, object] = ("", "")
    if one is not None and one[0] == op.FORMAT and (texts := function.unit.ir.constants[one[3]]):
        ends = texts[0], texts[-1]
    elif one is not None and one[0] == op.BINARY and function.text(one[3]) == "+":
        ends = function.constant(one[4]), function.constant(one[5])
    before, after = (end if isinstance(end, str) else "" for end in ends)
    return Affixes(before, after) if before or after else function.constant(register)
