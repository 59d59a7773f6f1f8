"""Objects that are made: the constructors that run, and the fields of a class without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.keyword_stores import sets_keywords
from streamlint.facts.code.objects import ClassObject, FunctionObject, Instance, Key, Object, Site, SomeClass, Unknown
from streamlint.facts.files.hierarchy import MOST_SUBCLASSES
from streamlint.facts.values.frames import Arguments
from streamlint.facts.values.iteration import Iteration
from streamlint.facts.values.nodes import Node


class Constructions(Iteration):
    """Value flow through constructors."""

    def make_object(self, callee: ClassObject, arguments: Arguments, target: Node) -> None:
        """A class of the program is called."""
        value = self.objects(Instance, callee.definition, not isinstance(callee, SomeClass))
        self.solver.add(target, value, None, arguments.site)
        for name in ("__init__", "__new__", "__post_init__"):
            given = arguments if name != "__post_init__" else self.no_arguments(arguments.site)
            for method, definition in self._constructors(callee, name):
                exact = definition is callee.definition and value.exact
                receiver = self.objects(Instance if name != "__new__" else ClassObject, definition, *([exact] if name != "__new__" else []))
                if name == "__new__":
                    self._made_by_new(method, receiver, given, target)
                else:
                    self.notify(self.function_object(method, None), receiver, given)
        self.constructed(callee, arguments)

    def _made_by_new(self, method: Function, receiver: Object, arguments: Arguments, target: Node) -> None:
        """``__new__`` gives the object, or something else in its place: a class whose call decorates a function."""
        given = Node(None)
        self.enter(self.function_object(method, None), receiver, arguments, given)
        self.solver.when(
            given, lambda value: self.solver.add(target, value, given, arguments.site) if not isinstance(value, Unknown) else None
        )

    def _constructors(self, callee: ClassObject, name: str) -> Iterator[tuple[Function, ClassInfo]]:
        """The methods of a name that making an object may run, each with the class of the object."""
        found = self.hierarchy.lookup(callee.definition, name)
        for method in found[1] if found is not None else ():
            yield method, callee.definition
        definers = self.hierarchy.definers(callee.definition, name) if isinstance(callee, SomeClass) else []
        for one in definers if len(definers) <= MOST_SUBCLASSES else ():
            for method in one.methods.get(name, ()):
                yield method, one

    def constructed(self, callee: ClassObject, arguments: Arguments) -> None:
        """An object is made of these arguments: fields of a class without a constructor take them."""
        for listener in self._construction_listeners.get(callee.definition, ()):
            listener(arguments)
        self._constructions.setdefault(callee.definition, {})[arguments] = None

    def when_constructed(self, callee: ClassObject, listener: Callable[[Arguments], None]) -> None:
        """Run a listener for the arguments that each object of a class is made of, now and later."""
        self._construction_listeners.setdefault(callee.definition, []).append(listener)
        for arguments in list(self._constructions.get(callee.definition, ())):
            listener(arguments)

    def given_as_field(self, value: Instance, name: str, node: Node) -> None:
        for definition in self.possible_classes(value):
            position = self._given_at(definition, name)
            if position is not None:
                self.search_constructions(definition)

                def made(arguments: Arguments, position: int = position) -> None:
                    if 0 <= position < len(arguments.positional):
                        self.solver.edge(arguments.positional[position], node, arguments.site)
                    elif name in arguments.keywords:
                        self.solver.edge(arguments.keywords[name], node, arguments.site)
                    for spread in arguments.double:
                        self.ask(self.keyed_of_node(spread), name, node)
                    for spread in arguments.starred:
                        self.spread(spread, name, node)

                self.when_constructed(self.objects(ClassObject, definition), made)

    # --- named tuples

    def element(self, value: Object, key: Key | None, target: Node, site: Site | None) -> None:
        if not isinstance(value, Instance) or not self._is_tuple(value):
            super().element(value, key, target, site)
        elif target.first("field", value, key):
            names = self.fields(value.definition)
            if isinstance(key, int):
                names = names[key : key + 1 or None]
            for name in names:
                self.solver.edge(self.attribute(value, name), target, site)

    def iterated(self, value: Object, target: Node, site: Site | None) -> None:
        if isinstance(value, Instance) and self._is_tuple(value):
            self.element(value, None, target, site)
        else:
            super().iterated(value, target, site)

    def _is_tuple(self, value: Instance) -> bool:
        """Whether an object is a tuple whose elements are its fields, and gives them itself."""
        is_named = not self.models.marked("named-tuple").isdisjoint(self.hierarchy.libraries(value.definition))
        return is_named and not (self.has_method(value, "__getitem__") or self.has_method(value, "__iter__"))

    # --- fields

    def _given_at(self, definition: ClassInfo, name: str) -> int | None:
        """The position at which a constructor takes a field; -1 if it does so by keyword only; None if it does not."""
        made = self.hierarchy.lookup(definition, "__init__")
        if made is None:
            fields = self.fields(definition)
            return (fields.index(name) if self.takes_by_position(definition) else -1) if name in fields else None
        is_free = not any(name == one.name for method in made[1] for one in method.code.parameters)
        return -1 if is_free and any(map(sets_keywords, made[1])) else None

    def takes_by_position(self, definition: ClassInfo) -> bool:
        """Whether a class without a constructor in the program takes its fields by position: a dataclass, as its decorator says, and a
        named tuple do; what else derives from a library's class has the constructor of that."""
        libraries = self.models.marked("plain-base") | self.models.marked("named-tuple")
        return any(one.ir.decorators for one in self.hierarchy.order(definition)) or libraries.issuperset(
            self.hierarchy.libraries(definition)
        )

    def fields(self, definition: ClassInfo) -> list[str]:
        """The names that a class and its bases annotate, in the order of a dataclass's constructor."""
        found: dict[str, None] = {}
        for one in reversed(self.hierarchy.order(definition)):
            found.update((member.name, None) for member in one.ir.fields if "ClassVar" not in member.annotation)
        return list(found)

    def attributes(self, value: Instance) -> Iterable[str]:
        stores = (name for one in self.hierarchy.order(value.definition) for name in one.own_stores)
        return dict.fromkeys((*self.fields(value.definition), *stores))

    def search_constructions(self, definition: ClassInfo) -> None:
        """Evaluate the calls that may make objects of a class."""
        raise NotImplementedError

    def notify(self, called: FunctionObject, receiver: Object | None, arguments: Arguments) -> None:
        """A call of a function was found."""
        raise NotImplementedError

    def spread(self, source: Node, key: int | str, node: Node) -> None:
        """The element under a key of what ``*x`` or ``**x`` spreads arrives at a node."""
        raise NotImplementedError


def is_constructor(function: Function) -> bool:
    """Whether a function is the constructor of its class."""
    method = function.method
    return method is not None and method.owner is not None and method.code.name == "__init__"


def is_destructor(function: Function) -> bool:
    """Whether a function is the destructor of its class."""
    method = function.method
    return method is not None and method.owner is not None and method.code.name == "__del__"
