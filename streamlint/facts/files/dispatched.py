"""Python: the functions that a generic one chooses among by the class of its first argument (`functools.singledispatch`)."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import arguments_of
from streamlint.facts.code.objects import Instance, Object
from streamlint.facts.files.hierarchy import Hierarchy
from streamlint.facts.files.program import Program
from streamlint.facts.files.scopes import Scopes
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized

_GENERIC = frozenset({"singledispatch", "singledispatchmethod"})
_REGISTER = "register"


class Dispatched:
    """Generic functions, and what is registered with them: by a decorator that names the generic function, in any file that does."""

    def __init__(self, program: Program, scopes: Scopes, hierarchy: Hierarchy) -> None:
        self._program = program
        self._scopes = scopes
        self._hierarchy = hierarchy

    @memoized
    def registered(self, generic: Function) -> tuple[Function, ...]:
        """The functions that are registered with a generic one."""
        if _GENERIC.isdisjoint(name.rpartition(".")[2] for name in generic.decorators):
            return ()
        units = self._program.mentioning(generic.code.name)
        return tuple(one for unit in units if not unit.is_cpp for one in unit.functions if self.generic(one) is generic)

    @memoized
    def generic(self, function: Function) -> Function | None:
        """The generic function that one is registered with."""
        return next((found for name in _registering(function) if (found := self._named(function, name)) is not None), None)

    def takes(self, body: Function, value: Object) -> bool:
        """Whether a generic function may run one of its bodies for an object: for one of the program the class that is nearest tells."""
        if not isinstance(value, Instance):
            return True
        own, generic = self._class_of(body), self.generic(body) or body
        classes = [one for each in self.registered(generic) if (one := self._class_of(each)) is not None]
        nearest = next((one for one in self._hierarchy.order(value.definition) if one in classes), None)
        return own is nearest

    @memoized
    def _class_of(self, function: Function) -> ClassInfo | None:
        """The class of the program that a function is registered for: by the decorator's argument, or the first parameter's type."""
        names = [name for call in function.decorations for name in _given(function, call)]
        names = names or [one.annotation for one in function.code.parameters[:1]]
        found = (one for name in names for one in self._scopes.find(function.unit, name) if isinstance(one, ClassInfo))
        return next(found, None)

    def _named(self, function: Function, name: str) -> Function | None:
        if function.owner is not None:
            named = function.owner.methods.get(name, ())
        else:
            named = [one for one in self._scopes.find(function.unit, name) if isinstance(one, Function)]
        return next((one for one in named if not _GENERIC.isdisjoint(each.rpartition(".")[2] for each in one.decorators)), None)


def _registering(function: Function) -> Iterator[str]:
    """The names of what decorators register a function with: ``@name.register`` and ``@name.register(Class)``."""
    home = function.parent
    for call in function.decorations if home is not None else ():
        assert home is not None
        made = home.definitions[call[3]]
        if made is not None and made[0] in (op.ATTR, op.INVOKE) and home.text(made[4]) == _REGISTER:
            yield home.dotted(made[3])


def _given(function: Function, decoration: Instruction) -> Iterator[str]:
    """What the call that makes a decorator is given, as names."""
    home = function.parent
    made = home.definitions[decoration[3]] if home is not None else None
    if home is not None and made is not None and made[0] == op.INVOKE:
        yield from (home.dotted(register) for register, _ in arguments_of(home, made))
