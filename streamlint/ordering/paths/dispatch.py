"""Methods of one object along a path: what a call of ``self.x()`` has run says which classes the object may be of."""

from __future__ import annotations

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Instance, is_unknown
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.waits.operands import operand_of

Classes = frozenset[ClassInfo]
Known = frozenset[tuple[Frame, Classes]]
"""By frame of a path: the classes that the object may be of whose method runs there."""


class Dispatch:
    """The classes of known objects."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._known: dict[tuple[ClassInfo, str], dict[Function, Classes]] = {}
        self._assigning: dict[tuple[ClassInfo, str], Classes] = {}

    def classes(self, function: Function, one: Instruction, callee: Function) -> Classes | None:
        """The classes of the receiver of which a call of its own method runs a function; None where that says nothing."""
        owner, name = function.owner, self._own_method(function, one)
        if owner is None or name is None:
            return None
        key = (owner, name)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._find(*key)
        return found.get(callee) if len(found) > 1 else None

    def _find(self, owner: ClassInfo, name: str) -> dict[Function, Classes]:
        by_method: dict[Function, set[ClassInfo]] = {}
        for each in self.facts.hierarchy.cone(owner) or ():
            defined = self.facts.hierarchy.lookup(each, name)
            for method in defined[1] if defined is not None else ():
                by_method.setdefault(method, set()).add(each)
        return {method: frozenset(classes) for method, classes in by_method.items()}

    def inside(self, known: Known, frame: Frame, one: Instruction, inner: Frame) -> Known:
        """What is known in a method that a path enters: what was known of the same object, or of the one that it is called of."""
        if not inner.function.has_receiver:
            return known
        mine = _of(known, frame) if self._is_own(frame.function, one) else self._of_receiver(frame.function, one, inner.function)
        return known | {(inner, mine)} if mine else known

    def behind(self, known: Known, frame: Frame) -> Known:
        """What is known behind the call with which a frame has begun: of the object of the caller, what its own method has told."""
        mine, caller = _of(known, frame), frame.caller
        rest = frozenset(each for each in known if each[0] != frame)
        if mine is None or caller is None or frame.call is None or not self._is_own(caller.function, frame.call):
            return rest
        before = _of(rest, caller)
        others = frozenset(each for each in rest if each[0] != caller)
        return others | {(caller, mine & before if before is not None else mine)}

    def above(self, known: Known, frame: Frame, outer: Frame, call: Instruction) -> Known | None:
        """What is known in a caller of the function with which a path begins; None if it calls that of no such object."""
        function = frame.function
        mine, chosen = _of(known, frame), self.classes(outer.function, call, function)
        if self._is_own(outer.function, call):
            both = [each for each in (mine, chosen) if each is not None]
            left = frozenset.intersection(*both) if both else None
            return None if left is not None and not left else frozenset({(outer, left)}) if left else frozenset()
        given = self._of_receiver(outer.function, call, function) if mine is not None else None
        return None if given is not None and mine is not None and mine.isdisjoint(given) else frozenset()

    def _is_own(self, function: Function, one: Instruction) -> bool:
        """Whether a method is called of the object whose method calls it."""
        receiver = function.definitions[one[3]] if one[0] == op.INVOKE and one[3] >= 0 and not function.is_cpp else None
        if receiver is None or function.method is not function or not function.has_receiver:
            return self._own_method(function, one) is not None
        is_super = receiver[0] == op.CALL and len(receiver) == 5 and function.dotted(receiver[3]) == "super"
        return is_super or (receiver[0] == op.PARAM and receiver[3] == 0)

    def _own_method(self, function: Function, one: Instruction) -> str | None:
        """The name of the method of its own object that a method calls; in C++ also without ``this``."""
        if one[0] not in (op.CALL, op.INVOKE) or function.method is not function or not function.has_receiver:
            return None
        called = function.definitions[one[3]] if one[3] >= 0 else None
        if called is None:
            return None
        if one[0] == op.INVOKE:
            return function.text(one[4]) if called[0] == op.PARAM and called[3] == 0 else None
        return function.text(called[3]) if function.is_cpp and called[0] == op.NAME else None

    def _of_receiver(self, function: Function, one: Instruction, callee: Function) -> Classes | None:
        """The classes of the object that a method is called of, where all that it may be is known, and some of it could be of another."""
        if one[0] != op.INVOKE or callee.owner is None or one[3] < 0 or len(self.facts.hierarchy.cone(callee.owner) or ()) < 2:
            return None
        values = list(self.facts.values(function, one[3]).values)
        if not values or not all(isinstance(value, Instance) for value in values):
            return None
        return frozenset(each for value in values if isinstance(value, Instance) for each in self.facts.possible_classes(value))

    def with_member(self, function: Function, name: str) -> Classes | None:
        """The classes of a method's receiver that assign a member by themselves, or inherit it; None where none does."""
        owner = function.owner
        if owner is None or function.is_cpp:
            return None
        key = (owner, name)
        found = self._assigning.get(key)
        if found is None:
            cone = self.facts.hierarchy.cone(owner) or ()
            lines = ((each, self.facts.hierarchy.order(each)) for each in cone)
            found = self._assigning[key] = frozenset(each for each, line in lines if any(name in one.own_stores for one in line))
        return found or None

    def is_of_member(self, function: Function, one: Instruction) -> bool:
        """Python: whether a call by the syntax of a method calls an object that a class keeps in its objects."""
        if one[0] != op.INVOKE or function.is_cpp or one[3] in one[6:]:
            return False
        name = function.text(one[4])
        kinds = [value.definition for value in self.facts.values(function, one[3]).values if isinstance(value, Instance)]
        lines = [self.facts.hierarchy.order(kind) for kind in kinds if self.facts.hierarchy.lookup(kind, name) is None]
        return bool(kinds) and len(lines) == len(kinds) and all(any(name in each.own_stores for each in line) for line in lines)

    def is_of_anyone(self, function: Function, one: Instruction) -> bool:
        """Whether a method is called of a member that a known call gives the constructor from unknown code."""
        owner = function.method.owner if function.method is not None else None
        read = function.definitions[one[3]] if one[0] == op.INVOKE and one[3] >= 0 and not function.is_cpp else None
        if owner is None or read is None or read[0] != op.ATTR:
            return False
        for store in owner.own_stores.get(function.text(read[4]), ()):
            given = store.function.definitions[store.value] if store.value >= 0 else None
            if given is None or given[0] != op.PARAM or store.function.code.name != "__init__":
                continue
            if any(self._gives_unknown(*place, store.function, given[3]) for place in self.facts.call_places(store.function)):
                return True
        return False

    def _gives_unknown(self, caller: Function, call: Instruction, callee: Function, index: int) -> bool:
        """Whether all that a call gives for a parameter comes from unknown code."""
        register = operand_of(caller, call, callee, index) if call[0] in (op.CALL, op.INVOKE) else None
        values = list(self.facts.values(caller, register).values) if register is not None and register >= 0 else []
        return bool(values) and is_unknown(values)


def _of(known: Known, frame: Frame) -> Classes | None:
    return next((classes for each, classes in known if each == frame), None)
