"""Looks for the places where a function may be called, an object used, a container changed.

Each call that the tracker proposes is then evaluated backwards (`calls.Calls.enter` tells whom it enters), so a wrong proposal costs time
and changes no result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import islice
from os.path import dirname

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import ClassObject, Container, ModuleObject, Object, Rest
from streamlint.facts.code.stores import Store
from streamlint.facts.files.autograd import is_differentiated
from streamlint.facts.files.program import Program, Unit
from streamlint.facts.files.steps import Following, Steps
from streamlint.facts.files.tracker import ITERATING, OF_OBJECTS, ContainerTracker, Tracker
from streamlint.facts.values.calls import Calls
from streamlint.facts.values.frames import Arguments
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.models.vocabulary import Selector

MOST_FILES = 60
"""Files that mention a name and are looked through for its uses, the nearest first."""
_KEEPING = frozenset({op.RETURN, op.YIELD, op.SET_ATTR, op.SET_ITEM, op.APPEND, op.BUILD, op.DICT})
"""What gives a value to whoever asks later."""


@cache
def _around(folder: str) -> tuple[str, ...]:
    """A folder, and those that it stands in, the innermost first; at last "" for all."""
    above = dirname(folder)
    return (folder, *_around(above)) if folder and folder != above else ("",)


def _once(units: Iterable[Unit]) -> Iterator[Unit]:
    """Each file where it comes first; those behind the last one that is asked for are not looked at."""
    seen = set[Unit]()
    for unit in units:
        if unit not in seen:
            seen.add(unit)
            yield unit


def _may_be_class(store: Store) -> bool:
    """Whether the receiver of a store may be a class: a name, the class of an object."""
    function = store.function
    one = function.definitions[store.receiver] if store.receiver >= 0 else None
    if one is None:
        return False
    if one[0] == op.ATTR:
        return function.text(one[4]) == "__class__"
    return one[0] in (op.NAME, op.LOAD) or (one[0] == op.CALL and function.dotted(one[3]) == "type")


def _may_be_module(store: Store) -> bool:
    """Whether the receiver of a store may be a module: a name that an import binds."""
    function = store.function
    one = function.definitions[store.receiver] if store.receiver >= 0 else None
    if one is not None and one[0] == op.NAME:
        made = (holder.definitions[register] for holder, register in function.unit.globals.get(function.text(one[3]), ()))
        return any(each is not None and each[0] == op.IMPORT for each in made)
    return one is not None and one[0] == op.IMPORT


class Callers(Calls):
    """Value flow that searches the program for callers."""

    def __init__(self, program: Program, models: Models | None = None) -> None:
        super().__init__(program, models)
        self._places: dict[Function, list[tuple[Function, Instruction]]] = {}
        self._stores: dict[Function, list[tuple[Function, Instruction]]] = {}  # of ``__setitem__``, where nothing is given back
        self._made: dict[ClassInfo, list[tuple[Function, Instruction]]] = {}
        self._changes: dict[tuple[Function, int, int], list[tuple[Function, Instruction]]] = {}
        self._nearest: dict[tuple[str, str], list[Unit]] = {}
        self._below: dict[str, dict[str, list[Unit]]] = {}  # by name: the files of a folder and of those in it
        self._searched: set[Function] = set()
        self.steps: dict[type[Following], dict[object, list[Steps]]] = defaultdict(dict)  # by kind: what trackers have found out
        self._searched_classes: set[ClassInfo] = set()

    @cached_property
    def starting(self) -> frozenset[str]:
        """The last parts of the names of methods that start a thread which was given the function before."""
        return frozenset(self.models.with_effect("start"))

    @cached_property
    def same(self) -> frozenset[str]:
        """The last parts of the names of methods of objects that give back the object itself: ``module.cuda()``, ``module.eval()``."""
        found = (each for effect in ("same", "module_to") for each in self.models.with_effect(effect).items())
        return frozenset(name for name, rows in found for row in rows if isinstance(of := row.get("of"), Selector) and of.kind == "self")

    def bound_to(self, names: list[str], method: str) -> Iterator[Function]:
        """The functions of another language that dotted names, or a method of an unknown object, may mean."""
        return iter(())

    def stored_on_class(self, definition: ClassInfo, name: str, node: Node) -> None:
        for store in definition.own_stores.get(name, ()):
            if store.function.is_class_method:
                self.solver.edge(self.register(self.base(store.function), store.value), node)
        for unit in self.nearest(name, definition.unit.path):
            for store in unit.attribute_stores.get(name, ()):
                if _may_be_class(store):
                    stored = self.register(self.base(store.function), store.value)

                    def arrived(held: Object, stored: Node = stored) -> None:
                        if isinstance(held, ClassObject) and definition in self.hierarchy.order(held.definition):
                            self.solver.edge(stored, node)

                    self.solver.when(self.register(self.base(store.function), store.receiver), arrived)

    def stored_on_module(self, unit: Unit, name: str, node: Node) -> None:
        for other in self.nearest(name, unit.path) if not unit.is_cpp else ():
            for store in other.attribute_stores.get(name, ()):
                if _may_be_module(store):
                    stored = self.register(self.base(store.function), store.value)

                    def arrived(held: Object, stored: Node = stored) -> None:
                        if isinstance(held, ModuleObject) and held.unit is unit:
                            self.solver.edge(stored, node)

                    self.solver.when(self.register(self.base(store.function), store.receiver), arrived)

    def mentioning(self, name: str) -> list[Unit]:
        """The files in which callers by a name are searched."""
        return self.program.mentioning(name)

    def nearest(self, name: str, path: str) -> list[Unit]:
        units = self.mentioning(name)
        if len(units) <= MOST_FILES:
            return units
        folder = dirname(path)
        found = self._nearest.get((name, folder))
        if found is None:
            below = self._below.get(name)
            if below is None:
                below = self._below[name] = defaultdict(list)
                for unit in units:
                    for around in _around(unit.folder):
                        below[around].append(unit)
            ordered = (unit for around in _around(folder) for unit in below.get(around, ()))
            found = self._nearest[name, folder] = list(islice(_once(ordered), MOST_FILES))
        return found

    def methods_named(self, name: str, near: Unit) -> list[Function]:
        """The methods of a name in the files that mention it."""
        return [method for unit in self.nearest(name, near.path) for method in unit.methods.get(name, ())]

    def call_places(self, function: Function) -> list[tuple[Function, Instruction]]:
        """The calls that may enter a function, as far as names and the flow of its value tell."""
        found = self._places.get(function)
        if found is None:
            self._places[function] = []
            found = self._places[function] = self._find_places(function)
        return found

    def resumed_places(self, function: Function) -> list[tuple[Function, Instruction]]:
        """Where the next value of a generator may be asked for, as far as names and the flow of what its calls give tell."""
        if not function.is_generator:
            return []
        tracker = Tracker(self)
        for caller, call in self.call_places(function):
            tracker.follow(caller, call[2])
        tracker.run()
        return list(tracker.calls)

    def _find_places(self, function: Function) -> list[tuple[Function, Instruction]]:
        tracker = Tracker(self)
        owner = function.owner
        if owner is None:
            if function.parent is not None and function.definition is not None:
                tracker.follow(function.parent, function.definition[2])
                for call in function.decorations:
                    tracker.follow(function.parent, call[2])
        else:
            self._seed_method(tracker, function, owner)
        tracker.run()
        self._stores[function] = [(one, use) for one, use in tracker.calls if use[0] == op.SET_ITEM]
        generic = self.dispatched.generic(function)
        through = self.call_places(generic) if generic is not None and generic is not function else ()
        return [*((one, use) for one, use in tracker.calls if op.DEFINES[use[0]]), *through]

    def _seed_method(self, tracker: Tracker, function: Function, owner: ClassInfo) -> None:
        name = function.code.name
        if name in ("__init__", "__new__", "__post_init__"):
            self._seed_class(tracker, owner, name)
        is_called = name == "__call__" or self._is_forwarded(owner, name)
        if name in OF_OBJECTS or is_called:
            self._seed_instances(tracker, owner, name)
        if name in ITERATING or is_called:
            self._seed_declared(tracker, owner, name)
        for asked in self._asked_as(owner, name):
            tracker.attribute(asked, owner.unit)
        if function.definition is not None and function.parent is not None:
            for made in (*function.decorations, function.definition):
                tracker.follow(function.parent, made[2])

    def _asked_as(self, owner: ClassInfo, name: str) -> Iterator[str]:
        """The names of the methods that are called where a method runs: what starts a thread, and what differentiates, beside its own."""
        if name == "run" and any(self.models.method(one, each) for one in self.hierarchy.libraries(owner) for each in self.starting):
            yield from sorted(self.starting)
        yield name
        if name == "forward" and is_differentiated(self.hierarchy, owner):
            yield "apply"

    def _is_forwarded(self, owner: ClassInfo, name: str) -> bool:
        return any(self.forwarded(library) == name for library in self.hierarchy.libraries(owner))

    def _seed_class(self, tracker: Tracker, owner: ClassInfo, name: str) -> None:
        """Follow a class, and those that inherit its constructor, to where objects are made."""
        for one in self.hierarchy.cone(owner) or [owner]:
            found = self.hierarchy.lookup(one, name)
            if found is not None and found[0] is owner:
                self._follow_class(tracker, one)

    def _follow_class(self, tracker: Tracker, definition: ClassInfo) -> None:
        for function in definition.unit.functions:
            for one in function.by_opcode[op.CLASS]:
                if one[3] == definition.ir.number:
                    tracker.follow(function, one[2])
        for methods in (each for one in self.hierarchy.order(definition) for each in one.methods.values()):
            for method in (each for each in methods if each.is_class_method):  # ``cls`` is the class
                _follow_receiver(tracker, method)

    def _seed_instances(self, tracker: Tracker, owner: ClassInfo, name: str) -> None:
        """Follow the objects of a class and of those that inherit a method."""
        for one in self.hierarchy.cone(owner) or [owner]:
            found = self.hierarchy.lookup(one, name)
            if found is None or found[0] is not owner:
                continue
            for caller, call in self.construction_places(one):
                tracker.follow(caller, call[2])
            for methods in one.methods.values():
                for inner in (each for method in methods for each in method.below if each.has_receiver):
                    _follow_receiver(tracker, inner)

    def _seed_declared(self, tracker: Tracker, owner: ClassInfo, name: str) -> None:
        """Follow the parameters that are declared to be objects of a class, or of one that inherits a method."""
        for one in self.hierarchy.cone(owner) or [owner]:
            found = self.hierarchy.lookup(one, name)
            for unit in self.nearest(one.name, owner.unit.path) if found is not None and found[0] is owner else ():
                for annotation, function, register in unit.annotated:
                    if one.name in annotation:
                        tracker.follow(function, register)

    def construction_places(self, definition: ClassInfo) -> list[tuple[Function, Instruction]]:
        """The calls that may make objects of exactly a class."""
        found = self._made.get(definition)
        if found is None:
            self._made[definition] = []
            tracker = Tracker(self)
            self._follow_class(tracker, definition)
            tracker.run()
            found = self._made[definition] = [(one, use) for one, use in tracker.calls if use[0] in (op.CALL, op.INVOKE)]
        return found

    def searched(self, function: Function) -> None:
        if function in self._searched:
            return
        self._searched.add(function)
        for caller, one in self.call_places(function):
            self.solver.demand(self.register(self.base(caller), one[2]))
        for caller, one in self._stores.get(function, ()):
            self.solver.demand(self.effect(self.base(caller), one))

    def search_constructions(self, definition: ClassInfo) -> None:
        """Evaluate the calls that may make objects of a class."""
        if definition not in self._searched_classes:
            self._searched_classes.add(definition)
            for caller, one in self.construction_places(definition):
                self.solver.demand(self.register(self.base(caller), one[2]))

    def container_uses(self, value: Container | Rest) -> list[tuple[Function, Instruction]]:
        function, register = value.frame.function, self._register_of(value)
        depth = 1 if isinstance(value, Container) and self.is_lacked(value) else 0
        key = (function, register, depth)
        found = self._changes.get(key)
        if found is None:
            tracker = ContainerTracker(self)
            tracker.follow(function, register, depth)
            tracker.run()
            found = self._changes[key] = list(tracker.changes)
            for caller, one in tracker.calls:  # it is passed: the functions that are given it may change it
                self.solver.demand(self.register(self.base(caller), one[2]))
        return found

    def _register_of(self, value: Container | Rest) -> int:
        """The register that holds a container where it is made, or the rest of the arguments where a function begins."""
        if isinstance(value, Container):
            return value.instruction[2]
        return next(one[2] for one in value.frame.function.by_opcode[op.PARAM] if one[3] == value.index)

    def is_private(self, function: Function) -> bool:
        """Whether only the program itself can call a function: it is nested, or its name says so by Python's convention."""
        if function.code.kind == "lambda" or (
            function.owner is None and function.parent is not None and function.parent.code.kind != "module"
        ):
            return True
        name = function.code.name
        return name.startswith("_") and not name.endswith("__")

    def is_given_away(self, function: Function) -> bool:
        """Whether a nested function leaves the one that makes it, so that unknown code may call it."""
        home = function.parent
        if home is None or home.code.kind == "module" or function.owner is not None:
            return False
        made = (one for one in home.by_opcode[op.FUNCTION] if home.unit.function(one[3]) is function)
        uses = ((one[2], use) for one in made for use in home.uses.get(one[2], ()))
        return any(use[0] in _KEEPING or (use[0] in (op.CALL, op.INVOKE) and use[3] != held) for held, use in uses)

    def callers(self, function: Function) -> list[tuple[Object | None, Arguments]]:
        """The calls of a function in the program, found by solving."""
        self.searched(function)
        self.solver.solve()
        found: dict[tuple[Object | None, Arguments], None] = {}
        for receiver, calls in self._calls.get(function, {}).items():
            for arguments in calls:
                places = arguments.joint.places() if arguments.joint is not None else (arguments,)
                found.update(((receiver, one), None) for one in places)
        return list(found)


def _follow_receiver(tracker: Tracker, method: Function) -> None:
    """Follow what a method calls its object, or its class."""
    for param in method.by_opcode[op.PARAM]:
        if param[3] == 0:
            tracker.follow(method, param[2])
