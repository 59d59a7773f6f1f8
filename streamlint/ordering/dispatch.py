"""Methods of one object along a path: what a call of ``self.x()`` has run says which classes the object may be of."""

from __future__ import annotations

from streamlint.facts.facts import Facts
from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.objects import Instance, is_unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import operand_of

Classes = frozenset[ClassInfo]


class Dispatch:
    """The classes of known objects."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._known: dict[tuple[ClassInfo, str], dict[Function, Classes]] = {}
        self._assigning: dict[tuple[ClassInfo, str], Classes] = {}

    def classes(self, function: Function, one: Instruction, callee: Function) -> Classes | None:
        """The classes of the receiver of which a call of its own method runs a function; None where that says nothing."""
        owner = function.owner
        if one[0] != op.INVOKE or owner is None or function.method is not function or not function.has_receiver:
            return None
        receiver = function.definitions[one[3]] if one[3] >= 0 else None
        if receiver is None or receiver[0] != op.PARAM or receiver[3] != 0:
            return None
        key = (owner, function.text(one[4]))
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
