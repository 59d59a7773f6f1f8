"""Tables of functions: under which texts a program puts a function into the table from which a call takes what it calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import Container, Instance, Object
from streamlint.facts.files.autograd import given_for
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.values.containers import put_by
from streamlint.facts.values.flags import Flags, text_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized

_DEEPEST = 5
"""Steps from what is called back to the table that it was taken from."""
_GOING_THROUGH = frozenset({"list", "tuple", "set", "reversed", "iter", "sorted", "enumerate"})
Entry = tuple[Function, int, int]
"""A function that puts something into a table, the register of the key, and that of the value."""


class Tables:
    """Answers under which texts functions stand."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts

    @memoized
    def texts(self, function: Function, lookup: Instruction, called: Function) -> frozenset[str] | None:
        """The texts under which a function stands in the table of a look-up; None where not all of them are known."""
        found = [self._under(*entry, called) for entry in self._entries(function, lookup)]
        known = [each for each in found if each is not None]
        return frozenset().union(*known) or None if len(known) == len(found) else None

    def _entries(self, function: Function, lookup: Instruction) -> Iterator[Entry]:
        """What is put into the table of a look-up, and into the lists that it holds."""
        for table in self._containers(function, lookup[3]):
            one, home = table.instruction, table.frame.function
            if one[0] == op.DICT:
                yield from ((home, name, held) for name, held in zip(one[3::2], one[4::2], strict=True) if name >= 0)
            for user, use in self.facts.container_uses(table):
                if use[0] == op.SET_ITEM:
                    yield user, use[3], use[4]
        for held in self._containers(function, lookup[2]):
            for user, use in self.facts.container_uses(held):
                for receiver, _, put, _ in put_by(user, use):
                    if (looked := lookup_of(user, receiver)) is not None:
                        yield user, key_of(looked), put

    def _containers(self, function: Function, register: int) -> list[Container]:
        return [value for value in list(self.facts.values(function, register).values) if isinstance(value, Container)]

    def _under(self, function: Function, key: int, value: int, called: Function) -> frozenset[str] | None:
        """The texts under which an entry puts a function: none where it puts another one; None where they are not known."""
        made = function.definitions[value] if value >= 0 else None
        parts = [
            each for each in (value, *(made[4:] if made is not None and made[0] == op.BUILD else ())) if self._holds(function, each, called)
        ]
        if not parts:
            return frozenset()
        if (text := self.text(function, {}, key)) is not None:
            return frozenset({text})
        named, given = function.definitions[key] if key >= 0 else None, function.definitions[uncast(function, parts[-1])]
        if named is None or given is None or given[0] != op.PARAM:
            return None
        found = [self._key_text(caller, call, function, named, given[3], called) for caller, call in self._calls(function)]
        return None if None in found else frozenset(text for text in found if text)

    def _calls(self, function: Function) -> list[tuple[Function, Instruction]]:
        places = self.facts.call_places(function)
        return [(caller, call) for caller, call in places if function in self.facts.callee_functions(caller, call)]

    def _key_text(
        self, caller: Function, call: Instruction, function: Function, named: Instruction, index: int, called: Function
    ) -> str | None:
        """The text that a call gives for the key with which it hands over a function; nothing where it hands over another one."""
        value = given_for(caller, call, function, index)
        if value is None or not self._holds(caller, value, called):
            return ""
        if named[0] == op.PARAM and function.code.parameters[named[3]].kind != "captured":
            key = given_for(caller, call, function, named[3])
            return self.text(caller, {}, key) if key is not None else None
        outer, made = function.parent, caller.definitions[call[3]] if call[0] == op.CALL else None
        if outer is None or made is None or made[0] not in (op.CALL, op.INVOKE):
            return None
        name = function.code.parameters[named[3]].name if named[0] == op.PARAM else function.unit.ir.constants[named[3]][0]
        places = (place for place, one in enumerate(outer.code.parameters) if one.name == name)
        keys = [given_for(caller, made, outer, place) for place in places if named[0] in (op.PARAM, op.LOAD)]
        return self.text(caller, {}, keys[0]) if keys and keys[0] is not None else None

    def text(self, function: Function, known: Flags, key: int) -> str | None:
        """The text that a key is; of a member of a class of the program (``Event.STEP``) one that names it, and nothing else."""
        if (text := text_of(function, known, key)) is not None:
            return text
        owner, _, name = function.dotted(key).rpartition(".")
        meant = self.facts.scopes.find(function.unit, owner) if owner else ()
        found = [one for one in meant if isinstance(one, ClassInfo) and name in one.assigned]
        return f"{found[0].unit.path}:{found[0].name}.{name}" if len(found) == 1 else None

    def known_from_call(self, caller: Function, known: Flags, call: Instruction, callee: Function, wanted: Iterable[int]) -> Flags:
        """The texts that a call gives for parameters."""
        given = ((index, given_for(caller, call, callee, index)) for index in wanted if call[0] in (op.CALL, op.INVOKE))
        texts = ((index, self.text(caller, known, register)) for index, register in given if register is not None)
        return {index: text for index, text in texts if text is not None}

    def _holds(self, function: Function, register: int, called: Function) -> bool:
        """Whether a register may hold a function, or an object that runs it when it is called."""
        values = list(self.facts.values(function, register).values) if register >= 0 else []
        return any(one.function is called for one in self.facts.functions_in(values)) or any(self._runs(one, called) for one in values)

    def _runs(self, value: Object, called: Function) -> bool:
        found = self.facts.hierarchy.lookup(value.definition, called.code.name) if isinstance(value, Instance) else None
        return found is not None and called in found[1]


def lookup_of(function: Function, register: int) -> Instruction | None:
    """The look-up in a table that a register was found by, alone or in a list: ``held[key]``, ``held.get(key, ())``."""
    for _ in range(_DEEPEST):
        one = function.definitions[uncast(function, register)] if register >= 0 else None
        if one is None:
            return None
        if (one[0] == op.ITEM and not isinstance(function.constant(one[4]), int)) or _looks_up(function, one):
            return one
        made = function.definitions[one[3]] if one[0] == op.UNPACK else None
        if made is not None and made[0] == op.BUILD and len(made) - 4 == one[5]:
            register = made[4 + one[4]]
        elif one[0] in (op.NEXT, op.ITER, op.UNPACK, op.ITEM):
            register = one[3]
        elif one[0] == op.CALL and len(one) > 5 and function.dotted(one[3]) in _GOING_THROUGH:
            register = one[5]
        else:
            return None
    return None


def _looks_up(function: Function, one: Instruction) -> bool:
    return one[0] == op.INVOKE and len(one) > 6 and function.text(one[4]) in function.known("looks-up")


def key_of(lookup: Instruction) -> int:
    """The register of the key of a look-up."""
    return lookup[4] if lookup[0] == op.ITEM else lookup[6]
