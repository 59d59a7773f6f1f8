"""Methods of Python without what stands under a switch that their constructor leaves off: `if self.offload`, of `offload=False`.

Where nothing on a root's way gives the constructor another value (`turned_on`), an object that is made there never comes to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.interpreter.index import assigned_attributes
from streamlint.record import field, record, replace

if TYPE_CHECKING:
    from streamlint.interpreter.relevance import Relevance


@record(frozen=True)
class Switch:
    """An attribute that a constructor gives a parameter's value, whose default is false. ``place`` counts arguments."""

    owner: str  # the class's last name
    parameter: str
    place: int
    attribute: str
    is_none: bool  # the default is None: `is not None` asks for it as well


@record(eq=False, slots=True)
class Switches:
    """The switches of one file's classes, and its methods without what stands under them."""

    relevance: Relevance
    _of_classes: dict[int, tuple[Switch, ...]] = field(default_factory=dict)
    _of: dict[int, tuple[Switch, ...]] = field(default_factory=dict)
    _without: dict[tuple[int, frozenset[Switch]], p.Function] = field(default_factory=dict)

    def of(self, function: p.Function) -> tuple[Switch, ...]:
        """The switches under which something of a method stands."""
        if id(function) not in self._of:
            known = self._known(function)
            self._of[id(function)] = tuple(switch for switch in known if _Pruned(function, (switch,)).left_out) if known else ()
        return self._of[id(function)]

    def without(self, function: p.Function, off: Collection[Switch]) -> p.Function:
        """A method without what stands under these switches; the method itself where that is nothing."""
        own = frozenset(switch for switch in self.of(function) if switch in off)
        if not own:
            return function
        if (id(function), own) not in self._without:
            pruned = _Pruned(function, own)
            made = self._without[id(function), own] = replace(function, body=pruned.body)
            self.relevance.stands_for(made, function, pruned.left_out)
        return self._without[id(function), own]

    def _known(self, function: p.Function) -> tuple[Switch, ...]:
        file = self.relevance.file
        definition = file.class_named(function.class_name) if function.class_name and not file.is_cuda and not file.is_cython else None
        if definition is None:
            return ()
        if id(definition) not in self._of_classes:
            self._of_classes[id(definition)] = tuple(_switches(definition))
        return self._of_classes[id(definition)]


def is_false(value: p.Expression | None) -> bool:
    """Whether an expression is a literal that is false."""
    return isinstance(value, p.Const) and value.value is not ... and not value.value


def false_by_default(function: p.Function) -> set[str]:
    """The parameters of a function that are false where nobody gives them."""
    return {param.name for param in function.params if is_false(param.default)}


def _switches(definition: p.Class) -> Iterator[Switch]:
    makers = definition.methods.get("__init__", [])
    if len(makers) != 1:
        return
    maker = makers[0]
    methods = [method for overloads in definition.methods.values() for method in overloads]
    given = Counter(name for method in methods for name, values in assigned_attributes(method).items() for _ in values)
    given.update(held.name for held in definition.fields)
    given.update(definition.methods.keys())  # properties
    changed = {target.id for node in p.walk(maker) if isinstance(node, p.Assign) for target in node.targets if isinstance(target, p.Name)}
    by_name = {param.name: (place, param) for place, param in enumerate(maker.params[1:]) if is_false(param.default)}
    for attribute, (value, *_) in assigned_attributes(maker).items():
        if given[attribute] == 1 and isinstance(value, p.Name) and value.id in by_name and value.id not in changed:
            place, param = by_name[value.id]
            is_none = isinstance(param.default, p.Const) and param.default.value is None
            yield Switch(definition.name.rpartition(".")[2], param.name, place, attribute, is_none)


class _Pruned:
    """A method's body without what stands under switches, and the statements that were left out, in stretches."""

    def __init__(self, function: p.Function, off: Collection[Switch]) -> None:
        self._this = function.params[0].name if function.params else ""
        self._off = {switch.attribute: switch for switch in off}
        self.left_out: list[p.Body] = []
        self.body = self._body(function.body)

    def _body(self, body: p.Body) -> p.Body:
        kept: p.Body = []
        for number, statement in enumerate(body):
            kept.append(self._statement(statement))
            if isinstance(statement, p.If) and self._asks(statement.test, on=False) and _ends(statement.then):
                self._leave_out(body[number + 1 :])  # `if not self.offload: return`
                break
        return kept

    def _statement(self, statement: p.Statement) -> p.Statement:
        if isinstance(statement, p.If):
            on, off = self._asks(statement.test, on=True), self._asks(statement.test, on=False)
            then, otherwise = statement.then, statement.otherwise
            if not on and not off:
                return replace(statement, then=self._body(then), otherwise=self._body(otherwise))
            self._leave_out(then if on else otherwise)
            return replace(statement, then=[] if on else self._body(then), otherwise=[] if off else self._body(otherwise))
        if isinstance(statement, p.Loop):
            return replace(statement, body=self._body(statement.body), otherwise=self._body(statement.otherwise))
        if isinstance(statement, p.With):
            return replace(statement, body=self._body(statement.body))
        if isinstance(statement, p.Try):
            handlers = [replace(handler, body=self._body(handler.body)) for handler in statement.handlers]
            body, otherwise, final = map(self._body, (statement.body, statement.otherwise, statement.final))
            return replace(statement, body=body, handlers=handlers, otherwise=otherwise, final=final)
        return statement

    def _leave_out(self, body: p.Body) -> None:
        if body:
            self.left_out.append(body)

    def _asks(self, test: p.Expression, *, on: bool) -> bool:
        """Whether a condition holds only where a switch is on; else, whether it holds wherever one is off."""
        if isinstance(test, p.Unary) and test.op == "not":
            return self._asks(test.operand, on=not on)
        if isinstance(test, p.Bool):
            return test.op == ("and" if on else "or") and any(self._asks(value, on=on) for value in test.values)
        if isinstance(test, p.Compare):
            nothing = isinstance(test.right, p.Const) and test.right.value is None and test.op == ("is not" if on else "is")
            switch = self._switch(test.left)
            return nothing and switch is not None and switch.is_none
        return on and self._switch(test) is not None

    def _switch(self, node: p.Expression) -> Switch | None:
        is_own = isinstance(node, p.Attr) and isinstance(node.value, p.Name) and node.value.id == self._this
        return self._off.get(node.name) if is_own and isinstance(node, p.Attr) else None


def _ends(body: p.Body) -> bool:
    return bool(body) and isinstance(body[-1], p.Return | p.Raise | p.Continue | p.Break)
