"""What calls give for parameters: an argument, what stands in a dictionary or list that is spread, or the default; where it was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.containers import put_by
from streamlint.facts.facts import Facts
from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.instructions import DICT, LIST, pairs_of
from streamlint.facts.objects import Container, Instance, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.entered import Context, entered_by
from streamlint.waits.operands import all_given, bound_of, operand_of

_DEEPEST = 10
_MOST_CALLS = 40
_SAME = {op.COPY: 3, op.CAST: 4}
_FILLED = frozenset({"star", "double"})


class Held(NamedTuple):
    """A register of a function that some calls have entered. ``classes``: of a constructor, those of the objects that it makes."""

    function: Function
    register: int
    context: Context = ()
    classes: frozenset[ClassInfo] | None = None

    @property
    def instruction(self) -> Instruction | None:
        """What defines the register."""
        return self.function.definitions[self.register] if self.register >= 0 else None


Roots = frozenset[Held]
_ABSENT = None
"""Stands for what a container does not hold."""
_Parts = list[Held | None]


class Given:
    """Asks what calls give: those by which a path has come, and where there is none, all calls in view."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._known: dict[Held, Roots | None] = {}
        self._asking: set[Held] = set()

    def roots(self, held: Held, depth: int = _DEEPEST) -> Roots | None:
        """Where all that a register may hold was made; None where that cannot be told."""
        if held in self._known:
            return self._known[held]
        if held in self._asking:
            return frozenset()  # what hangs on itself adds nothing
        self._asking.add(held)
        found = self._find(held, depth) if depth else None
        self._asking.discard(held)
        if depth == _DEEPEST:
            self._known[held] = found
        return found

    def _find(self, held: Held, depth: int) -> Roots | None:
        one = held.instruction
        if one is None:
            return None
        parts: Iterable[Held | None] | None = (held,)
        if one[0] in _SAME:
            parts = (held._replace(register=one[_SAME[one[0]]]),)
        elif one[0] == op.PHI and not held.function.is_cpp:
            parts = [held._replace(register=each) for each in one[3:] if each != held.register]
        elif (parameter := held.function.kept_parameter(held.register)) >= 0:
            one = held.function.definitions[parameter]
            parts = self._of_parameter(held._replace(register=parameter), one[3], depth) if one is not None else None
        elif one[0] in (op.ITEM, op.INVOKE) and not held.function.is_cpp:
            parts = self._of_entry(held, one, depth)
        if parts is None:
            return None
        found = list(parts)
        return frozenset({held}) if found == [held] else self._joined(found, depth - 1)

    def _joined(self, parts: Iterable[Held | None], depth: int) -> Roots | None:
        every = [self.roots(part, depth) if part is not None else None for part in parts]
        return frozenset[Held]().union(*(each for each in every if each is not None)) if None not in every else None

    # --- parameters

    def entries(self, held: Held) -> list[Site] | None:
        """The calls by which a function may have been entered; None where they are not known."""
        function = held.function
        if (entered := entered_by(held.context, function)) is not None:
            return [entered]
        if function.is_cpp:
            return None
        calls = self.facts.callers(function)
        if (classes := held.classes) is not None:
            calls = [call for call in calls if not isinstance(call[0], Instance) or call[0].definition in classes]
        sites = [arguments.site for _, arguments in calls]
        found = list(dict.fromkeys(site for site in sites if site is not None))
        return found if found and None not in sites and len(found) <= _MOST_CALLS else None

    def _of_parameter(self, held: Held, index: int, depth: int) -> _Parts | None:
        entries = self.entries(held)
        if entries is None or held.function.code.parameters[index].kind in _FILLED:
            kept: _Parts = [held]
            return kept if entries is not None else None
        return [part for site in entries for part in self._by_call(held, index, site, depth)]

    def _by_call(self, held: Held, index: int, call: Site, depth: int) -> _Parts:
        """What a call gives for a parameter of a function, or leaves at its default; with None in it where that is not known."""
        callee, (caller, one) = held.function, call
        if one[0] not in (op.CALL, op.INVOKE):
            return [None]
        register = operand_of(caller, one, callee, index)
        if register is not None:
            return [_outside(held, call, register) if register >= 0 else None]
        found: _Parts = []
        for key, spread in self._spread(callee, index, call):
            parts = self.under(_outside(held, call, spread), key, depth - 1)
            if parts is None:
                return [None]
            found += [part for part in parts if part is not _ABSENT]
            if _ABSENT not in parts:
                return found
        default = callee.default_place(index)
        return [*found, Held(*default) if default is not None else None]

    def _spread(self, callee: Function, index: int, call: Site) -> Iterator[tuple[object, int]]:
        """What a call spreads that may hold an argument for a parameter, each with the key under which it would."""
        parameter, position = callee.code.parameters[index], bound_of(*call, callee)
        for kind, register in all_given(*call, callee):
            if kind == DICT or (kind == LIST and parameter.kind == "plain"):
                yield (parameter.name if kind == DICT else index - position), register
            position += kind is None

    # --- containers

    def _of_entry(self, held: Held, one: Instruction, depth: int) -> _Parts | None:
        """What stands under a constant key of a dictionary or list that the program shows whole."""
        function = held.function
        if one[0] == op.ITEM:
            receiver, key, default = one[3], function.constant(one[4]), op.NONE
        elif function.text(one[4]) in function.known("looks-up", "pops-key") and len(one) > 6 and one[5] == op.NONE:
            receiver, key, default = one[3], function.constant(one[6]), one[7] if len(one) > 7 else op.NONE
        else:
            return [held]
        parts = self.under(held._replace(register=receiver), key, depth - 1) if key is not None else None
        if parts is None or (_ABSENT in parts and one[0] == op.INVOKE and default < 0):
            return [held]
        found: _Parts = [part for part in parts if part is not _ABSENT]
        found += [held._replace(register=default)] if _ABSENT in parts and default >= 0 else []
        return found or [held]

    def under(self, held: Held, key: object, depth: int = _DEEPEST) -> _Parts | None:
        """What a container holds under a key, with `_ABSENT` in it where that may be nothing; None where that is not known."""
        whole = self.roots(held, depth) if depth > 0 else None
        every = [self._of_container(root, key, depth) for root in whole or ()]
        return [part for each in every for part in each or ()] if every and None not in every else None

    def _of_container(self, root: Held, key: object, depth: int) -> _Parts | None:
        one, function = root.instruction, root.function
        if one is None or one[0] not in (op.DICT, op.BUILD, op.PARAM, op.CALL) or self._is_changed(root, key):
            return None
        if one[0] == op.PARAM:
            return self._collected(root, one[3], key, depth)
        if one[0] == op.BUILD:
            is_plain = isinstance(function.unit.ir.constants[one[3]], str) and isinstance(key, int)
            parts = one[4:]
            return [root._replace(register=parts[key]) if key < len(parts) else _ABSENT] if is_plain and isinstance(key, int) else None
        pairs = list(pairs_of(function, one))
        found: _Parts = []
        for name, register in reversed(pairs):
            if name == key and name is not None:
                return [*found, root._replace(register=register)]
            inner = self.under(root._replace(register=register), key, depth - 1) if name == DICT else [_ABSENT]
            if inner is None or name is None:
                return None
            found += [part for part in inner if part is not _ABSENT]
            if _ABSENT not in inner:
                return found
        return [*found, _ABSENT] if pairs or one[0] == op.DICT else None

    def _collected(self, root: Held, index: int, key: object, depth: int) -> _Parts | None:
        """The same of ``*args`` and ``**kwargs``."""
        callee = root.function
        kind = callee.code.parameters[index].kind
        first = sum(parameter.kind == "plain" for parameter in callee.code.parameters)
        entries = self.entries(root) if kind in _FILLED else None
        if entries is None:
            return None
        found: _Parts = []
        for site in entries:
            position = bound_of(*site, callee)
            parts: _Parts = [_ABSENT]
            for given, register in all_given(*site, callee):
                held = _outside(root, site, register)
                if kind == "double" and given == key:
                    parts = [held]
                elif kind == "star" and given is None:
                    parts = [held] if position - first == key else parts
                    position += 1
                elif given == (DICT if kind == "double" else LIST) and _ABSENT in parts:
                    further = self.under(held, key if kind == "double" or not isinstance(key, int) else key + first - position, depth - 1)
                    if further is None:
                        return None
                    parts = further
            found += parts
        return found

    def _is_changed(self, root: Held, key: object) -> bool:
        """Whether something may be put under a key into a container behind its display."""
        values = self.facts.values(root.function, root.register).values
        made = next((value for value in values if isinstance(value, Container) and value.instruction is root.instruction), None)
        uses = self.facts.container_uses(made) if made is not None else [(root.function, use) for use in root.function.uses[root.register]]
        for function, use in uses:
            for receiver, name, _, spreads in put_by(function, use):
                held = self.facts.values(function, receiver).values
                is_it = (function, receiver) == root[:2] or any(isinstance(each, Container) and each is made for each in held)
                if is_it and (spreads or name in (None, key)):
                    return True
        return False


def _outside(held: Held, call: Site, register: int) -> Held:
    """A register of what calls a function. A constructor that another one calls for its own object is one of the same classes."""
    caller, one = call
    is_same = one[0] == op.INVOKE and caller.text(one[4]) == held.function.code.name and caller.code.name == held.function.code.name
    context = tuple(entry for entry in held.context if entry[0] is not held.function)
    return Held(caller, register, context, held.classes if is_same else None)
