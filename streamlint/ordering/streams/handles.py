"""C++: the handles of libraries that work goes through, where they are made, and which calls give them a stream."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Instance, LibraryObject, Object, Site, Unknown
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.places.places import Places, is_object
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

Variable = tuple[object, ...]
LIFE = frozenset({"__init__", "__del__"})
"""The names of constructors and destructors."""


class Handles:
    """Knows handles by the calls that make them, and where these are unknown by their variables."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = places

    def bindings(self, function: Function, register: int) -> Iterator[ModelledCall]:
        """The calls that may give a handle a stream; of a library without handles those that give it one for all its calls."""
        made, name = self._made(function, register), self._variable(function, register)
        for call in self._binds:
            other, is_of_all = call.one("handle"), call.row.get("handle") is None
            if other is None or is_of_all or register < 0:
                if is_of_all == (register < 0):
                    yield call
                continue
            others, theirs = self._made(call.function, other), self._variable(call.function, other)
            if made & others if made and others else self._is_alike(call.function is function, bool(made), name, theirs):
                yield call

    def is_made_in_view(self, function: Function, register: int) -> bool:
        """Whether it is known where a handle is made."""
        if self._made(function, register):
            return not any(isinstance(value, Unknown) for value in self.facts.values(function, register).values)
        name = self._variable(function, register)
        return name is not None and any(
            theirs[-1] == name[-1] and (name[1] is None or theirs == name) for theirs in self._variables if theirs is not None
        )

    def makers(self, function: Function, register: int) -> list[Site]:
        """The calls in view that make a handle, in the order of the program."""
        return sorted(self._made(function, register), key=lambda site: (site.function.unit.path, site.at))

    def _made(self, function: Function, register: int) -> frozenset[Site]:
        """The calls that make what a register may hold."""
        values = self._held(function, register) if register >= 0 else ()
        handles = (value for value in values if isinstance(value, LibraryObject) and value.kind == "handle")
        return frozenset(value.site for value in handles if value.site is not None)

    def _held(self, function: Function, register: int) -> Iterator[Object]:
        """What a register holds, and what the conversions of an object give."""
        for value in self.facts.values(function, register).values:
            yield value
            named = value.definition.methods if function.is_cpp and isinstance(value, Instance) else {}
            for method in (each for name, methods in named.items() if name.startswith("operator ") for each in methods):
                yield from (one for end in method.by_opcode[op.RETURN] if end[2] >= 0 for one in self.facts.values(method, end[2]).values)

    def is_unbound(self, function: Function, register: int) -> bool:
        """C++: whether a handle is made in view, and nothing gives it a stream."""
        is_alone = function.is_cpp and self.is_made_in_view(function, register)
        return is_alone and bool(self._made(function, register)) and not any(True for _ in self.bindings(function, register))

    def _may_run(self, call: ModelledCall) -> bool:
        """Whether the program may run a call: not in a method that nothing calls, of a class whose other methods other code calls."""
        function = call.function
        owner = function.method.owner if function.is_cpp and function.method is not None else None
        if owner is None or function.code.name in LIFE or self.facts.call_places(function):
            return True
        others = (method for name, methods in owner.methods.items() if name not in LIFE for method in methods if method is not function)
        return not any(caller.owner is not owner for method in others for caller, _ in self.facts.call_places(method))

    def _variable(self, function: Function, register: int) -> Variable | None:
        """A handle by its variable: the class and the member, or the function and the local name."""
        place = self.places.of(function, register)
        path = tuple(key for key in place.path if key not in ("&", "*"))
        if is_object(place.root) and path and function.method is not None and function.method.owner is not None:
            return ("member", function.method.owner.name, path[-1])
        if path:
            return ("member", None, path[-1])
        if place.root[0] in ("global", "cell"):
            return place.root
        return None

    def _is_alike(self, together: bool, is_made: bool, name: Variable | None, theirs: Variable | None) -> bool:
        """Whether two variables may hold the same handle, of which one at least was made by unknown code."""
        if name is not None and theirs is not None:
            return name[-1] == theirs[-1] and (None in (name[1], theirs[1]) or name == theirs)
        return together or not is_made

    @cached_property
    def _binds(self) -> list[ModelledCall]:
        """The calls that give handles a stream."""
        return [call for call in self.transfer.sites(frozenset({"bind_stream"})) if self._may_run(call)]

    @cached_property
    def _variables(self) -> list[Variable | None]:
        """Where handles are stored that calls make."""
        found = []
        for call in self.transfer.sites(frozenset({"object"})):
            selector = call.row.get("into")
            kind = self.facts.cpp_models.type_named(str(call.row.get("type", "")))
            register = call.given(selector) if isinstance(selector, Selector) and kind is not None and kind.kind == "handle" else None
            if register is not None:
                found.append(self._variable(call.function, register))
        return found
