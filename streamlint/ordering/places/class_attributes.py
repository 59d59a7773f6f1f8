"""Python: attributes that all objects of a class share: its body makes them, and nothing sets them on an object. One event, one buffer."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Container, Instance, LibraryObject, Memory
from streamlint.facts.files.scopes import ExternalName
from streamlint.facts.graph.facts import Facts
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized

if TYPE_CHECKING:
    from streamlint.ordering.places.places import Place

_FIELD = "dataclasses.field"


class ClassAttributes:
    """Looks for the class whose body has made what an attribute of an object is."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def owner(self, function: Function, base: Place, register: int, name: str) -> ClassInfo | None:
        """The class whose attribute that of an object is; None where objects have their own, or where that is not known."""
        if function.is_cpp or base.path or name not in self._assigned:
            return None
        if base.root == ("parameter", 0) and function.has_receiver:
            definition = function.method.owner if function.method is function else None
        else:
            kinds = {value.definition if isinstance(value, Instance) else None for value in self.facts.values(function, register).values}
            definition = kinds.pop() if len(kinds) == 1 else None
        return self._shared(definition, name) if definition is not None else None

    @cached_property
    def _assigned(self) -> frozenset[str]:
        """What the bodies of classes assign to."""
        units = self.facts.program.units.values()
        return frozenset(name for unit in units if not unit.is_cpp for owner in unit.classes for name in owner.assigned)

    @memoized
    def _shared(self, definition: ClassInfo, name: str) -> ClassInfo | None:
        classes = self.facts.hierarchy.cone(definition) or ()
        makers = {one for each in classes for one in self.facts.hierarchy.order(each) if name in one.assigned}
        owner = makers.pop() if len(makers) == 1 else None
        if owner is None or len(owner.assigned[name]) != 1 or self._is_field(owner, owner.assigned[name][0]):
            return None
        made = self.facts.values(owner.body, owner.assigned[name][0]).values
        values = self.facts.held_by(self.facts.objects(Instance, definition, False), name).values
        held = {
            value for value in values if not (isinstance(value, LibraryObject) and value.site is None)
        }  # without what an annotation says
        is_one = bool(made) and all(isinstance(value, (LibraryObject, Memory, Container)) for value in made)
        return owner if is_one and held <= set(made) else None

    def _is_field(self, owner: ClassInfo, register: int) -> bool:
        """Whether each object gets its own of what a call in the body describes."""
        one = owner.body.definitions[register] if register >= 0 else None
        meant = self.facts.scopes.find(owner.unit, owner.body.dotted(one[3])) if one is not None and one[0] == op.CALL else ()
        return any(isinstance(each, ExternalName) and each.name == _FIELD for each in meant)
