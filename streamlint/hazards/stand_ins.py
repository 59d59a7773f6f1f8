"""Classes that are taken where another one cannot be: ``Pinned if can_pin() else Plain``. That they pin nothing is their purpose."""

from __future__ import annotations

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import ClassObject
from streamlint.ir import opcodes as op
from streamlint.transfer.contexts import Contexts

_PINNING = frozenset({"factory", "pin", "alloc", "register"})


class StandIns:
    """Knows the classes of Python that hold no pinned memory, where another one does that a condition takes instead."""

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts
        self.transfer = contexts.transfer
        self.facts = contexts.facts
        self._known: dict[ClassInfo, bool] = {}

    def holds(self, function: Function) -> bool:
        """Whether a function is a method of such a class."""
        owner = function.method.owner if function.method is not None else None
        if owner is None or function.is_cpp:
            return False
        if owner not in self._known:
            self._known[owner] = any(self._pins(twin) for twin in self._siblings(owner)) and not self._pins(owner)
        return self._known[owner]

    def _siblings(self, owner: ClassInfo) -> set[ClassInfo]:
        """The other classes that a condition takes in the place of a class."""
        found: set[ClassInfo] = set()
        for unit in self.facts.program.mentioning(owner.ir.name):
            for function in unit.functions if not unit.is_cpp else ():
                for one in function.by_opcode[op.PHI]:
                    names = [made for each in one[3:] if each >= 0 and (made := function.definitions[each]) is not None]
                    if len(names) == len(one) - 3 and all(made[0] == op.NAME for made in names):
                        taken = {value.definition for each in one[3:] for value in self._classes(function, each)}
                        found |= taken - {owner} if owner in taken else set()
        return found

    def _classes(self, function: Function, register: int) -> list[ClassObject]:
        return [value for value in self.facts.values(function, register).values if isinstance(value, ClassObject)]

    def _pins(self, definition: ClassInfo) -> bool:
        names = self.transfer.names(_PINNING)
        for method in (each for methods in definition.methods.values() for each in methods):
            for one in (*method.by_opcode[op.CALL], *method.by_opcode[op.INVOKE]):
                for call in self.transfer.modelled(method, one) if last_name(method, one) in names else ():
                    if call.row.effect in ("pin", "register") or call.row.get("memory") == "pinned":
                        return True
                    if call.row.get("pin") is not None and self.contexts.truth(call, "pin", ()) is not False:
                        return True
        return False
