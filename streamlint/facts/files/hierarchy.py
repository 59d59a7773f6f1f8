"""The classes of a program: bases, the order in which members are looked up, subclasses."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.stores import Store
from streamlint.facts.files.program import Program
from streamlint.facts.files.scopes import ExternalName, Scopes
from streamlint.support.memo import memoized

MOST_MIXED = 100
"""Classes that define a member: of more than these no mixins are looked for."""
MOST_SUBCLASSES = 60
"""A cone of more subclasses is not looked at: its members are unknown."""


class Hierarchy:
    """Answers questions about classes. Each answer is computed once."""

    def __init__(self, program: Program, scopes: Scopes) -> None:
        self.program = program
        self.scopes = scopes
        self._orders: dict[ClassInfo, list[ClassInfo]] = {}
        self._roots: dict[ClassInfo, ClassInfo] = {}
        self._definers: dict[str, dict[ClassInfo, list[ClassInfo]]] = {}

    @memoized
    def bases(self, definition: ClassInfo) -> list[ClassInfo | ExternalName]:
        """The direct bases; those that are no plain name are left out."""
        found: list[ClassInfo | ExternalName] = []
        for text in definition.ir.bases:
            if definition.unit.is_cpp:
                found.append(self._cpp_base(definition, text))
                continue
            head = text.partition("[")[0].replace("::", ".")
            meant = self.scopes.find(definition.unit, head)
            classes = [one for one in meant if isinstance(one, ClassInfo) and one is not definition]
            found += classes[:1] or [one for one in meant if isinstance(one, ExternalName)][:1]
        return found

    def _cpp_base(self, definition: ClassInfo, text: str) -> ClassInfo | ExternalName:
        cpp, scope = self.program.cpp, definition.name
        kind = cpp.resolved(definition.unit, scope, (text.partition("<")[0], (), 0, False, None))
        found = cpp.find_class(definition.unit, scope, str(kind[0]))
        return found if found is not None and found is not definition else ExternalName(str(kind[0]))

    def order(self, definition: ClassInfo) -> list[ClassInfo]:
        """The class and its bases in the program, in the order in which members are looked up."""
        if definition not in self._orders:
            self._orders[definition] = [definition]  # a class that derives from itself
            self._orders[definition] = self._linearised(definition)
        return self._orders[definition]

    def _linearised(self, definition: ClassInfo) -> list[ClassInfo]:
        bases = [one for one in self.bases(definition) if isinstance(one, ClassInfo)]
        lines = [list(self.order(base)) for base in bases] + [list(bases)]
        found = [definition]
        while lines := [line for line in lines if line]:
            heads = [line[0] for line in lines]
            chosen = next((head for head in heads if not any(head in line[1:] for line in lines)), heads[0])
            found.append(chosen)
            lines = [[one for one in line if one is not chosen] for line in lines]
        return found

    def root(self, definition: ClassInfo) -> ClassInfo:
        """The class of the program furthest up: that from which it derives over the longest chain."""
        found = self._roots.get(definition)
        if found is None:
            bases = [one for one in self.bases(definition) if isinstance(one, ClassInfo)]
            self._roots[definition] = definition  # a class that derives from itself
            found = self.root(max(bases, key=lambda one: len(self.order(one)))) if bases else definition
            self._roots[definition] = found
        return found

    def definers(self, definition: ClassInfo, name: str) -> list[ClassInfo]:
        """The classes that give objects of derived classes a member of a name: those that derive from a class, and what they mix in."""
        if name not in self._definers:
            units = (unit for unit in self.program.mentioning(name) if name in unit.members)
            defining = [one for unit in units for one in unit.classes if name in one.methods or name in one.assigned]
            found: dict[ClassInfo, dict[ClassInfo, None]] = {}
            for one in defining:
                for base in self.order(one)[1:]:
                    found.setdefault(base, {})[one] = None
            for one in defining if len(defining) <= MOST_MIXED else ():
                for base in self._mixed_with(one, name):
                    found.setdefault(base, {})[one] = None
            self._definers[name] = {base: list(each) for base, each in found.items()}
        return self._definers[name].get(definition, [])

    def _mixed_with(self, definition: ClassInfo, name: str) -> Iterator[ClassInfo]:
        """The classes that a derived class has beside one that defines a member, and behind it in the order of look-up."""
        for child in self.cone(definition) or ():
            order = self.order(child)
            first = next(one for one in order if name in one.methods or name in one.assigned)
            if first is definition and len(self.bases(child)) > 1:
                yield from (one for one in order[order.index(definition) + 1 :] if not self.derives(definition, one))

    @memoized
    def has_member(self, definition: ClassInfo, name: str) -> bool:
        """Whether a class, a base or a class that derives from it may have a member of a name, or code outside of them sets one."""
        line = self.order(definition)
        is_own = any(name in one.methods or name in one.assigned or name in one.own_stores or one.declares(name) for one in line)
        return is_own or bool(self.definers(definition, name)) or self._is_set_outside(name)

    def stores(self, definition: ClassInfo, name: str) -> list[Store]:
        """Where the methods of a class and of its bases set an attribute of their object."""
        return [store for one in self.order(definition) for store in one.own_stores.get(name, ())]

    @memoized
    def _is_set_outside(self, name: str) -> bool:
        return any(name in unit.attribute_stores for unit in self.program.mentioning(name))

    def members_begun(self, definition: ClassInfo, prefix: str, derived: bool) -> list[str]:
        """The names of members that begin so, of a class and its bases, and of those that derive from it."""
        classes = self.order(definition)
        if derived:
            everywhere = (one for unit in self.program.units.values() for one in unit.classes)
            classes = [*classes, *(one for one in everywhere if self.derives(one, definition))]
        return list(dict.fromkeys(name for one in classes for name in (*one.methods, *one.assigned) if name.startswith(prefix)))

    def libraries(self, definition: ClassInfo) -> list[str]:
        """The library's classes that a class derives from, nearest first, by their dotted names."""
        names = (base.name for one in self.order(definition) for base in self.bases(one) if isinstance(base, ExternalName))
        return list(dict.fromkeys(names))

    def has_of_language(self, definition: ClassInfo, name: str) -> bool:
        """Whether a class derives from one of the language that has a member."""
        return any(hasattr(getattr(builtins, library, None), name) for library in self.libraries(definition))

    @memoized
    def metaclass(self, definition: ClassInfo) -> ClassInfo | None:
        """The metaclass of a class, if the program defines it."""
        found = None
        for one in self.order(definition):
            said = next((text for word, text in one.ir.keywords if word == "metaclass"), "")
            found = next((each for each in self.scopes.find(one.unit, said) if isinstance(each, ClassInfo)), None) if said else None
            if found is not None:
                break
        return found

    def derives(self, definition: ClassInfo, base: ClassInfo) -> bool:
        """Whether a class is another one or derives from it."""
        return base in self.order(definition)

    @memoized
    def children(self, definition: ClassInfo) -> list[ClassInfo]:
        """The classes that name this one among their bases."""
        return [
            one
            for unit in self.program.mentioning(definition.ir.name)
            for one in unit.classes
            if one is not definition and any(definition.ir.name in base for base in one.ir.bases) and definition in self.bases(one)
        ]

    @memoized
    def cone(self, definition: ClassInfo) -> list[ClassInfo] | None:
        """The class and all that derive from it; None where there are too many."""
        found = [definition]
        for one in found:
            found.extend(child for child in self.children(one) if child not in found)
            if len(found) > MOST_SUBCLASSES:
                break
        return found if len(found) <= MOST_SUBCLASSES else None

    def lookup(self, definition: ClassInfo, name: str) -> tuple[ClassInfo, list[Function]] | None:
        """The methods of a name that an object of exactly this class has, with the class that defines them."""
        for one in self.order(definition):
            if name in one.methods:
                return one, one.methods[name]
            if name in one.assigned:
                return None
        return None
