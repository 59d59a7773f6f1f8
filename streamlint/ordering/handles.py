"""C++: the handles of libraries that work goes through, where they are made, and which calls give them a stream."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.functions import Function
from streamlint.facts.objects import LibraryObject, Site, Unknown
from streamlint.models.vocabulary import Selector
from streamlint.ordering.places import Places, is_object
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

Variable = tuple[object, ...]


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
        values = self.facts.values(function, register).values if register >= 0 else ()
        handles = (value for value in values if isinstance(value, LibraryObject) and value.kind == "handle")
        return frozenset(value.site for value in handles if value.site is not None)

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
        return list(self.transfer.sites(frozenset({"bind_stream"})))

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
