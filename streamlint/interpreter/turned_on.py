"""Whether something on a root's way may turn a switch on: give it by name or by its place, or make the object in a way that is not seen.

What is said is taken for what is done: a keyword, an attribute or a literal string of that name anywhere on the way is enough, and so is
the name of a class that has the switch where it is not called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.interpreter.at_hand import is_optional
from streamlint.interpreter.index import assigned_attributes
from streamlint.interpreter.makers import classes_given
from streamlint.interpreter.notes import Kept, kept
from streamlint.interpreter.switches import Switch, false_by_default, is_false
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.interpreter.relevance import Relevance

_OWN = ("cls", "__class__", "type")  # what makes an object of the class that a method belongs to


@record(frozen=True)
class Making:
    """A call that may make an object: the name that is called, how many arguments it gives by their place, and its stars (0 to 2)."""

    name: str
    places: int
    stars: int


@record(frozen=True)
class Told:
    """What some code says of switches: the names that it gives a value, the classes that it names, and the objects that it makes."""

    given: frozenset[str]
    named: frozenset[str]
    makings: frozenset[Making]


@record(frozen=True)
class Head:
    """A class's bases, and the places of its constructor's parameters; None where it has its base's. ``open`` takes any number."""

    bases: frozenset[str]
    places: dict[str, int] | None
    open: bool


@record(eq=False, slots=True)
class TurnedOn:
    """What the code of one file says of switches."""

    relevance: Relevance
    # By functions, and whether all is known that makes the object; by classes, and whether it is what their constructors are given.
    _told: dict[tuple[int, bool], Kept[Told]] = field(default_factory=dict)
    _around: dict[str, Kept[Told]] = field(default_factory=dict)  # by what stands outside of functions, here and in the files that it names
    _own: dict[str, Head] | None = None
    _heads: dict[str, Kept[dict[str, Head]]] = field(default_factory=dict)  # of the files that it names, too

    def by(self, function: p.Function, is_seen: bool) -> Iterator[Told]:
        """What is told by a function, and by the other methods of its class of what they give their object.

        ``is_seen``: whoever calls the function, or makes the class's object, is on the way as well, so that a parameter is false there
        if nothing gives it.
        """
        file = self.relevance.file
        yield kept(self._told, (id(function), is_seen), self._find_told, [function], false_by_default(function) if is_seen else ())
        definition = file.class_named(function.class_name) if function.class_name else None
        if definition is not None:
            yield kept(self._told, (id(definition), False), self._find_told, _given(definition), ())
            if function.name == "__init__":
                yield kept(self._told, (id(definition), True), self._find_given_to_constructor, definition)

    def _find_given_to_constructor(self, definition: p.Class) -> Told:
        return Told(frozenset(), frozenset(classes_given(definition, self.relevance.file)), frozenset())

    def around(self) -> Told:
        """What is told by the statements of this file's module and classes, and of those of the files that it names."""
        return kept(self._around, "", self._find_around)

    def _find_around(self) -> Told:
        told = [file.relevance.turned_on.own_around() for file in self.relevance.reach()]
        parts = zip(*((each.given, each.named, each.makings) for each in told), strict=True)
        given, named, makings = (frozenset().union(*part) for part in parts)
        return Told(given, named, makings)

    def own_around(self) -> Told:
        """The same of this file alone."""
        module = self.relevance.file.module
        held = [part for definition in module.classes.values() for part in (*definition.fields, *definition.body)]
        return kept(self._around, "own", self._find_told, [*_statements(module.body), *held], ())

    def heads(self) -> dict[str, Head]:
        """The classes of this file and of those that it names, by their last names."""
        return kept(self._heads, "", self._find_heads)

    def _find_heads(self) -> dict[str, Head]:
        return {name: head for file in reversed(self.relevance.reach()) for name, head in file.relevance.turned_on.own().items()}

    def own(self) -> dict[str, Head]:
        """The classes of this file, and other names of classes."""
        if self._own is None:
            module = self.relevance.file.module
            self._own = {_last(definition.name): _head(definition) for definition in module.classes.values()}
            for statement in module.body:
                if (alias := _alias(statement)) is not None:
                    self._own.setdefault(alias[0], Head(frozenset({self._home_name(alias[1])}), None, False))
        return self._own

    def _find_told(self, parts: Sequence[object], false: Collection[str]) -> Told:
        given, named, makings, passed = set[str](), set[str](), set[Making](), set[int]()
        for node in (inner for part in parts for inner in p.walk(part)):
            if isinstance(node, p.Call):
                passed.add(id(node.function))
                called = self._called(node)
                if called in ("isinstance", "issubclass"):
                    passed.update(id(inner) for arg in node.args[1:] for inner in p.walk(arg))
                stars = max((arg.stars for arg in node.args), default=0)
                makings.add(Making(called, sum(arg.keyword is None and not arg.stars for arg in node.args), stars))
                given.update(arg.keyword for arg in node.args if arg.keyword and not _is_off(arg.keyword, arg.value, false))
            elif isinstance(node, p.Assign):
                passed |= _optional(node.annotation)
                attributes = [target.name for target in node.targets if isinstance(target, p.Attr)]
                given.update(name for name in attributes if node.op or not _is_off(name, node.value, false))
            elif isinstance(node, p.Param | p.Field):
                passed |= _optional(node.annotation)
            elif isinstance(node, p.Function) and node.annotation is not None:
                passed.update(id(inner) for inner in p.walk(node.annotation))
            elif isinstance(node, p.Const):
                if isinstance(node.value, str) and node.value.isidentifier():
                    given.add(node.value)
            elif isinstance(node, p.Name | p.Attr) and id(node) not in passed:
                named.add(self._home_name(node))
        classes = self.heads().keys()
        known = (making for making in makings if making.name in classes or making.name in ("__init__", *_OWN))
        return Told(frozenset(given), frozenset(named & classes), frozenset(known))

    def _called(self, node: p.Call) -> str:
        function = node.function.function if isinstance(node.function, p.Call) else node.function  # `type(self)()`
        return self._home_name(function) if isinstance(function, p.Name | p.Attr) else ""

    def _home_name(self, node: p.Name | p.Attr) -> str:
        """What a name is called where it comes from."""
        if isinstance(node, p.Attr):
            return node.name
        return _last(self.relevance.file.module.imports.get(node.id, node.id))


def may_be_on(switch: Switch, root: p.Function, met: Sequence[tuple[p.Function, Relevance]]) -> bool:
    """Whether one of the functions on a root's way may turn a switch on, or the root's own object has it."""
    files = dict.fromkeys(holder.turned_on for _, holder in met)
    heads = {name: head for file in files for name, head in file.heads().items()}
    family = _family(switch.owner, heads)

    def gives(told: Told, function: p.Function | None) -> bool:
        return (
            not told.given.isdisjoint((switch.parameter, switch.attribute))
            or not family.isdisjoint(told.named)
            or any(_gives(making, switch, heads, family, function) for making in told.makings)
        )

    def turns_on(function: p.Function, file: TurnedOn) -> bool:
        is_own = _last(function.class_name) in family
        is_property = is_own and function.name == switch.attribute
        return is_property or any(gives(told, function) for told in file.by(function, is_own))

    return (
        _last(root.class_name) in family
        or any(gives(file.around(), None) for file in files)
        or any(turns_on(function, holder.turned_on) for function, holder in met)
    )


def _gives(making: Making, switch: Switch, heads: dict[str, Head], family: set[str], function: p.Function | None) -> bool:
    """Whether a call makes an object that has a switch, and may reach its parameter."""
    if making.name not in family:
        own = function is not None and _last(function.class_name) in family
        by_stars = making.stars == 1 or (making.stars > 0 and making.name != "__init__")  # what `**` hands on was given by name
        return own and making.name in ("__init__", *_OWN) and (by_stars or making.places > switch.place)
    head = heads.get(making.name)
    if making.stars or head is None or head.places is None:
        return making.stars > 0 or making.places > switch.place
    return making.places > head.places.get(switch.parameter, 0 if head.open else making.places)


def _family(owner: str, heads: dict[str, Head]) -> set[str]:
    """A class and those that derive from it."""
    family, grown = {owner}, True
    while grown:
        fresh = {name for name, head in heads.items() if name not in family and not family.isdisjoint(head.bases)}
        family |= fresh
        grown = bool(fresh)
    return family


def _head(definition: p.Class) -> Head:
    bases = frozenset(base.name if isinstance(base, p.Attr) else base.id for base in definition.bases if isinstance(base, p.Attr | p.Name))
    makers = definition.methods.get("__init__", [])
    places = {param.name: place for maker in makers for place, param in enumerate(maker.params[1:]) if param.kind == "plain"}
    return Head(bases, places if makers else None, any(param.kind == "star" for maker in makers for param in maker.params))


def _given(definition: p.Class) -> list[p.Expression]:
    """What methods of a class give its objects."""
    methods = [method for overloads in definition.methods.values() for method in overloads]
    return [value for method in methods for values in assigned_attributes(method).values() for value in values]


def _statements(body: p.Body) -> list[p.Statement]:
    """Those that do more than define and name."""
    defining = (p.FunctionDef, p.ClassDef, p.Import)
    return [statement for statement in body if not isinstance(statement, defining) and _alias(statement) is None]


def _alias(statement: p.Statement) -> tuple[str, p.Name] | None:
    """`Other = Class`: both names."""
    if not isinstance(statement, p.Assign) or not isinstance(statement.value, p.Name) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    return (target.id, statement.value) if isinstance(target, p.Name) else None


def _is_off(name: str, value: p.Expression | None, false: Collection[str]) -> bool:
    """Whether what is given under a name is false, or what a caller gives under the same name."""
    return is_false(value) or (isinstance(value, p.Name) and value.id == name and name in false)


def _optional(annotation: p.Expression | None) -> set[int]:
    """The parts of an annotation of which no object is made (`roots.typed_by_annotation`)."""
    return {id(inner) for inner in p.walk(annotation)} if annotation is not None and is_optional(annotation) else set()


def _last(name: str) -> str:
    return name.rpartition(".")[2]
