"""C++: looks for the places where a function may be called, an object made or used, a container or a place changed."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Constant, Elements, Instance, LibraryObject, Object, Site
from streamlint.facts.code.passing import stored
from streamlint.facts.code.stores import Store
from streamlint.facts.cpp.cpp_owners import CppOwners
from streamlint.facts.files.cpp_scopes import Variable, last_part, scope_of
from streamlint.facts.files.cpp_tracker import MAKES, CppTracker
from streamlint.facts.files.program import Program
from streamlint.facts.files.steps import Place
from streamlint.facts.values.frames import Frame
from streamlint.facts.values.nodes import Node
from streamlint.ir import FieldIR, Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TemplateArgument, TypeTuple
from streamlint.models import Models
from streamlint.support.memo import memoized


class CppCallers(CppOwners):
    """Value flow that searches the C++ of a program for callers."""

    def __init__(self, program: Program, models: Models | None = None, cpp_models: Models | None = None) -> None:
        super().__init__(program, models, cpp_models)
        self._evaluated: set[tuple[Frame, Instruction]] = set()

    # --- who calls

    def _find_places(self, function: Function) -> list[Place]:
        if not function.is_cpp:
            return super()._find_places(function)
        tracker = CppTracker(self)
        name, owner = function.code.name, function.owner
        if function.code.kind == "lambda":
            if function.parent is not None and function.definition is not None:
                tracker.follow(function.parent, function.definition[2])
        elif owner is not None and name in ("__init__", "__del__", "operator()"):
            self._follow_objects(tracker, owner, name)
        else:
            tracker.attribute(last_part(function.name), function.unit)
        tracker.run()
        return list(tracker.calls)

    def _follow_objects(self, tracker: CppTracker, owner: ClassInfo, name: str) -> None:
        """Follow the objects of a class from where they are made."""
        for caller, one in self.construction_places(owner):
            tracker.called(caller, one)
            if name != "__init__" and op.DEFINES[one[0]]:
                tracker.follow(caller, one[2])
        if name == "__del__":
            for unit in self.cpp.seeing(owner.unit):
                for function in unit.functions:
                    for opcode in (op.DESTROY, op.DELETE):
                        for one in function.by_opcode[opcode]:
                            tracker.called(function, one)

    def construction_places(self, definition: ClassInfo) -> list[Place]:
        if not definition.unit.is_cpp:
            return super().construction_places(definition)
        found = self._made.get(definition)
        if found is None:
            name = definition.ir.name
            found = self._made[definition] = []
            for unit in self.cpp.mentioning(name):
                for function in unit.functions:
                    found += ((function, one) for one in self._makes(function, definition))
        return found

    def _makes(self, function: Function, definition: ClassInfo) -> Iterator[Instruction]:
        """The instructions of a function that may make objects of a class."""
        constants = function.unit.ir.constants
        made = (one for opcode in MAKES for one in function.by_opcode[opcode])
        yield from (one for one in made if self._names(function, constants[one[3]], definition))
        yield from self._makes_by_call(function, definition)
        for one in function.by_opcode[op.INIT]:
            name = function.text(one[3])
            if last_part(name) == definition.ir.name or self._is_member(function, name, definition):
                yield one

    def _makes_by_call(self, function: Function, definition: ClassInfo) -> Iterator[Instruction]:
        """The calls that may make objects of a class: by its name, as a template's argument, or inside of what holds them."""
        scope = scope_of(function)
        for one in function.by_opcode[op.CALL]:
            callee = function.definitions[one[3]]
            template = function.code.templates.get(one[1], ()) if one[1] >= 0 else ()
            text = function.text(callee[3]) if callee is not None and callee[0] == op.NAME else ""
            named = last_part(text) == definition.ir.name and self.cpp.find_class(function.unit, scope, text) is definition
            if named or any(self._names_class(function, one, definition) for one in template):
                yield one
        for one in function.by_opcode[op.INVOKE]:
            if self.brace_lists.constructed(function, one) == definition.ir.name:
                yield one

    def _is_member(self, function: Function, name: str, definition: ClassInfo) -> bool:
        """Whether an initialiser names a member that is an object of a class."""
        owner = self.member_of(function, name)
        kind = next((one.type for one in owner.ir.fields if one.name == name), None) if owner is not None else None
        if owner is None or kind is None or kind[2] or kind[3] or kind[4] is not None:
            return False
        return self.named_type(owner.body, kind)[1] is definition

    def given_to_member(self, owner: ClassInfo, name: str) -> Iterator[tuple[Function, int]]:
        """The registers that functions store in a data member, and that objects without a constructor of their own are made with."""
        for unit in self.cpp.mentioning(name):
            for store in unit.cpp_stores.get(name, ()):
                plain = store.receiver == op.NONE or store.instruction[0] == op.INIT
                if self.member_of(store.function, self._spelled(store)) is owner if plain else self._is_receiver(store, owner):
                    yield store.function, store.value
        fields = [one.name for one in owner.ir.fields]
        for function, one in self.construction_places(owner) if "__init__" not in owner.methods else ():
            given = one[5:] if one[0] in (op.CONSTRUCT, op.NEW) else ()
            if name in fields and fields.index(name) < len(given):
                yield function, given[fields.index(name)]

    def _is_receiver(self, store: Store, owner: ClassInfo) -> bool:
        """Whether what a store changes may be an object of a class, or of one that derives from it."""
        node = self.solver.demand(self.register(self.base(store.function), store.receiver))
        self.solver.solve()
        return any(isinstance(value, Instance) and self.hierarchy.derives(value.definition, owner) for value in node.values)

    def possible_classes(self, value: Instance) -> list[ClassInfo]:
        """Of an object of a class or of one that derives from it: the classes of which the program makes objects; all if it makes none."""
        if value.exact or not value.definition.unit.is_cpp:
            return super().possible_classes(value)
        cone = self.hierarchy.cone(value.definition)
        if cone is None:
            return []
        return [one for one in cone if self.is_made(one)] or cone

    @memoized
    def is_made(self, definition: ClassInfo) -> bool:
        """Whether the program makes objects of exactly a class, as members too."""
        made = any(one[0] != op.INIT for _, one in self.construction_places(definition))
        return made or any(
            self._names(unit.body, member.type, definition)
            for unit in self.cpp.mentioning(definition.ir.name)
            for holder in unit.classes
            for member in holder.ir.fields
        )

    def _names_class(self, function: Function, argument: TemplateArgument, definition: ClassInfo) -> bool:
        name = str(argument[0]) if isinstance(argument, tuple) else ""
        return last_part(name) == definition.ir.name and self.cpp.find_class(function.unit, scope_of(function), name) is definition

    def _names(self, function: Function, kind: TypeTuple | None, definition: ClassInfo) -> bool:
        """Whether a type is a class, or holds objects of it."""
        if kind is None:
            return False
        if not kind[2] and self.named_type(function, kind)[1] is definition:
            return True
        return any(self._names(function, one, definition) for one in kind[1])

    def searched(self, function: Function) -> None:
        if not function.is_cpp:
            super().searched(function)
        elif function not in self._searched:
            self._searched.add(function)
            for caller, one in self.call_places(function):
                self.evaluate(self.base(caller), one)

    def search_constructions(self, definition: ClassInfo) -> None:
        if not definition.unit.is_cpp:
            super().search_constructions(definition)
        elif definition not in self._searched_classes:
            self._searched_classes.add(definition)
            for caller, one in self.construction_places(definition):
                self.evaluate(self.base(caller), one)

    def evaluate(self, frame: Frame, one: Instruction) -> None:
        """Have an instruction call what it calls."""
        if op.DEFINES[one[0]]:
            self.solver.demand(self.register(frame, one[2]))
        elif (frame, one) not in self._evaluated:
            self._evaluated.add((frame, one))
            if one[0] == op.DESTROY and self.has_deleter(frame.function, one[2]):
                self.run_deleters(frame, one)
            elif one[0] in (op.DESTROY, op.DELETE):
                self.each_instance(self.register(frame, one[2]), lambda held: self._ended(held, frame, one))
            elif one[0] == op.INIT:
                self._initialised(frame, one)

    def _ended(self, value: Instance, frame: Frame, one: Instruction) -> None:
        """An object ends: its destructor and those of its bases run."""
        given = self.no_arguments_of(frame, one)
        for definition in self.possible_classes(value):
            for each in self.hierarchy.order(definition):
                for method in each.methods.get("__del__", ()):
                    self.notify(self.function_object(method, None), self.objects(Instance, definition, True), given)

    def _initialised(self, frame: Frame, one: Instruction) -> None:
        """A constructor's initialiser: of a member that is an object, of a base, or of the object by another constructor."""
        function = frame.function
        for method in self.made_by(function, one):
            owner = method.owner
            if owner is not None:
                self.notify(self.function_object(method, None), self.objects(Instance, owner, True), self.arguments(frame, one))

    def made_by(self, function: Function, one: Instruction) -> list[Function]:
        """The constructors that an instruction may run."""
        if one[0] == op.LAUNCH:
            return []
        kind: TypeTuple | None
        if one[0] == op.INIT:
            name = function.text(one[3])
            owner = self.member_of(function, name)
            kind = (
                next((each.type for each in owner.ir.fields if each.name == name), None)
                if owner is not None
                else (name, (), 0, False, None)
            )
        else:
            kind = function.unit.ir.constants[one[3]]
        meant = self.named_type(function, kind)[1] if kind is not None else None
        return meant.methods.get("__init__", []) if isinstance(meant, ClassInfo) else []

    def members_given(self, function: Function, one: Instruction) -> list[tuple[FieldIR, int]]:
        """The members that the arguments initialise of an object whose class has no constructor of its own, each with its register."""
        if one[0] not in (op.CONSTRUCT, op.NEW):
            return []
        meant = self.named_type(function, function.unit.ir.constants[one[3]])[1]
        fields = meant.ir.fields if isinstance(meant, ClassInfo) and "__init__" not in meant.methods else ()
        return list(zip(fields, one[5:], strict=False))

    def is_private(self, function: Function) -> bool:
        if not function.is_cpp:
            return super().is_private(function)
        return function.code.kind in ("lambda", "default") or not function.is_linked

    # --- places and containers

    def stores_through(self, addresses: Iterator[Place]) -> list[Place]:
        tracker = CppTracker(self)
        for function, one in addresses:
            tracker.follow(function, one[2])
        tracker.run()
        for caller, one in tracker.calls:
            self.evaluate(self.base(caller), one)
        return [(function, one) for function, one in tracker.changes if one[0] == op.SET_DEREF]

    def _objects_inside(self, value: Elements, is_open: bool, node: Node) -> None:
        """Elements that are objects of a class, which stand in the container from the beginning; of one that callers out of view have
        filled (``is_open``) also the objects that they put in pointers to."""
        if value not in self.element_types:
            return
        function, kind = self.element_types[value]
        home = (*value.home, "first")
        known = self.object_of(function, kind, home, True)
        if known is None and is_open:
            pointed = self.object_of(function, kind, home, False)
            known = pointed if isinstance(pointed, Instance) else None
        if isinstance(known, (Instance, LibraryObject)):
            self.solver.add(node, known)

    def _contents_of(self, value: Elements, node: Node) -> None:
        tracker = CppTracker(self)
        kind, owner = value.home[:2]
        is_open = kind in ("outside", "unknown")
        self._objects_inside(value, is_open, node)
        if kind == "made":
            frame, one = value.home[1:]
            tracker.follow(frame.function, one[2])
            for given in self.arguments(frame, one).positional if one[0] in (op.CONSTRUCT, op.NEW) else ():
                self._given_to(given, node)
            for given in self._map_values(frame, one):
                self.solver.edge(given, node)
        elif kind == "field":
            tracker.attribute(value.home[2], owner.unit)
        elif is_open:
            self.unknown(node, "caller")
        elif isinstance(owner, Variable):
            tracker.attribute(last_part(owner.name), owner.unit)
        tracker.run()
        addresses, rounds = list[Place](), list[Place]()
        for function, use in tracker.changes:
            if use[0] in (op.ADDRESS_ITEM, op.ADDRESS_ATTR):
                addresses.append((function, use))
            elif use[0] == op.STORE:
                rounds.append((function, use))
            else:
                self._put_in(value, function, use, node)
        for caller, one in tracker.calls:
            self.evaluate(self.base(caller), one)
        for function, use in rounds:
            self._stored_in_round(value, function, use, node)
        self.stored_through(iter(addresses), node)

    def _stored_in_round(self, value: Elements, function: Function, use: Instruction, node: Node) -> None:
        """What a loop stores in its variable is stored in the container, for the variable may be a reference."""
        frame = self.base(function)
        element = function.definitions[use[3]]
        iterator = function.definitions[element[3]] if element is not None else None
        if iterator is not None and iterator[0] == op.ITER:
            cell = self.cell(frame, *function.unit.ir.constants[use[2]])
            self.solver.when(self.register(frame, iterator[3]), lambda held: self.solver.edge(cell, node) if held is value else None)

    def _map_values(self, frame: Frame, one: Instruction) -> Iterator[Node]:
        """The values of a map that is made of a list of pairs in braces."""
        lists = one[4:5] if one[0] == op.CAST else one[5:] if one[0] == op.CONSTRUCT else ()
        listed = (frame.function.definitions[each] for each in lists if each >= 0)
        for each in (pair for pairs in listed if pairs is not None and pairs[0] == op.BUILD for pair in pairs[4:]):
            pair = frame.function.definitions[each]
            if pair is not None and pair[0] == op.BUILD and len(pair) == 6:
                yield self.register(frame, pair[5])

    def _given_to(self, source: Node, node: Node) -> None:
        """The initial elements: a list's, another container's, or the value of each; a number is how many there are."""

        def arrived(held: Object) -> None:
            if held is not self.scalar and not isinstance(held, Constant):
                self._element_at(held, None, node, source.site)

        self.solver.when(source, arrived)

    def _put_in(self, value: Elements, function: Function, use: Instruction, node: Node) -> None:
        frame = self.base(function)
        if use[0] == op.INVOKE:
            receiver, register = use[3], stored(function, use)
        else:
            receiver, register = use[2], use[-1]
        if register is None or register == op.NONE:
            return
        source, site = self.register(frame, register), Site(function, use)
        self.each_pointed(self.register(frame, receiver), lambda held: self.solver.edge(source, node, site) if held is value else None)
