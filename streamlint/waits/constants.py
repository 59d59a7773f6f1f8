"""The constants that a value may be, by the calls of a path or by all calls in view, over members that constructors alone set."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import arguments_of, unnegated
from streamlint.facts.code.objects import Constant, External, LibraryObject, Memory, Unknown
from streamlint.facts.graph.facts import Facts
from streamlint.facts.values.flags import is_own
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.closures import captured
from streamlint.waits.entered import Context, Held, entered_by
from streamlint.waits.given import Given

Values = frozenset[object]
_DEEPEST = 6
_OBJECTS = frozenset({"stream", "event", "graph"})
_CHOOSING = frozenset({op.COMPARE, op.UNARY, op.ITEM})
_MOST = 64
"""Pairs of constants of which one comparison is asked."""
_KEEPING: dict[str, Callable[[Any], object]] = {"bool": bool, "int": int}
_SPELLING: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper, "strip": str.strip, "casefold": str.casefold}
"""Methods of texts that say the same in other letters."""
_SIGNS: dict[str, Callable[[Any, Any], object]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "is": operator.eq, "is not": operator.ne, "in": lambda left, right: left in right, "not in": lambda left, right: left not in right,
}  # fmt: skip


class Constants:
    """The constants of a program's values."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.given = Given(facts, self.truth)
        self._asking: set[Held] = set()

    def truth(self, function: Function, register: int, context: Context = ()) -> bool | None:
        """Whether a condition holds; None where that is not known."""
        values = self.values(function, register, context)
        if values is None and not function.is_cpp:
            roots = self.given.roots(Held(function, register, context)) or ()
            known = ((True, self._is_object), (False, self._is_declined)) if roots else ()
            return next((truth for truth, is_known in known if all(map(is_known, roots))), None)
        truths = {bool(value) for value in values or ()}
        return truths.pop() if len(truths) == 1 else None

    def never_taken(self, function: Function, block: int) -> Iterator[tuple[int, int]]:
        """The way of the branch at the end of a block that no call takes."""
        end = function.code.blocks[block][-1]
        if end[0] == op.BRANCH and end[3] != end[4]:
            register, is_turned = unnegated(function, end[2])
            if (holds := self.truth(function, register)) is not None:
                yield block, end[4] if holds != is_turned else end[3]

    def _is_object(self, root: Held) -> bool:
        """Whether a register holds a stream, an event or a graph, which count as true."""
        one = root.instruction
        if one is None or one[0] in _CHOOSING or self._may_be_missing(root.function, root.register):
            return False
        held = list(self.facts.values(root.function, root.register).values)
        return bool(held) and all(isinstance(value, LibraryObject) and value.kind in _OBJECTS for value in held)

    def settled(self, function: Function, register: int) -> bool | None:
        """Whether a condition holds that hangs on no call of its function: an attribute that constructors alone set, to constants, or one
        of a library's object. None for any other."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] != op.ATTR or function.is_cpp:
            return None
        held = Held(function, register)
        kept = self.given.members.of(held, one[3], function.text(one[4])) if is_own(function, one[3]) else None
        made = [each.instruction for each in kept or ()]
        if made and self.given.members.is_fixed(function.text(one[4])) and all(each is not None and each[0] == op.CONST for each in made):
            return self.truth(function, register)
        return False if self._is_declined(held) else None

    def _is_declined(self, root: Held) -> bool:
        """Whether a register holds an attribute of a library's object that is made with ``False`` for the argument of that name, and that
        nobody sets."""
        one, function = root.instruction, root.function
        name = function.text(one[4]) if one is not None and one[0] == op.ATTR and not function.is_cpp else ""
        if one is None or not name or any(unit.attribute_stores.get(name) for unit in self.facts.program.mentioning(name)):
            return False
        makers = self.given.roots(root._replace(register=one[3])) or ()
        return bool(makers) and all(self._is_made_without(maker, name) for maker in makers)

    def _is_made_without(self, maker: Held, name: str) -> bool:
        """Whether a call gives ``False`` for an argument by its name, and makes an object of a library that no row is about."""
        one, function = maker.instruction, maker.function
        if one is None or one[0] not in (op.CALL, op.INVOKE) or function.is_cpp:
            return False
        given = [register for register, kind in arguments_of(function, one) if kind == name]
        called = list(self.facts.callees(function, one))
        is_of_library = bool(called) and all(isinstance(value, External) for value in called)
        is_known = any(isinstance(value, (Memory, LibraryObject)) for value in self.facts.values(function, one[2]).values)
        return is_of_library and not is_known and len(given) == 1 and self.values(function, given[0], maker.context) == frozenset({False})

    def values(self, function: Function, register: int, context: Context = (), depth: int = _DEEPEST) -> Values | None:
        """The constants that a register may hold; None where something else may be."""
        return self._in(Held(function, register, context), depth)

    def _in(self, held: Held, depth: int) -> Values | None:
        roots = self.given.roots(held) if depth else None
        return _joined(self._once(root, depth) for root in roots) if roots is not None else None

    def _once(self, root: Held, depth: int) -> Values | None:
        """What a register may hold; what hangs on itself adds nothing."""
        if root in self._asking:
            self.given.cycles += 1
            return frozenset()
        self._asking.add(root)
        found = self._of(root, depth)
        self._asking.discard(root)
        return found

    def is_none(self, function: Function, register: int, context: Context = ()) -> bool | None:
        """Whether a register holds None; None where that is not known."""
        found = {self._is_none(root) for root in self.given.roots(Held(function, register, context)) or ()}
        return found.pop() if len(found) == 1 else None

    def _is_none(self, root: Held) -> bool | None:
        values = self._of(root, _DEEPEST)
        if values is not None:
            return (None in values) if len(values) == 1 or None not in values else None
        held = (
            list(self.facts.values(root.function, root.register).values) if not self._may_be_missing(root.function, root.register) else []
        )
        may_be = any(isinstance(value, Unknown) or (isinstance(value, Constant) and value.value is None) for value in held)
        return False if held and not may_be else None

    def _may_be_missing(self, function: Function, register: int) -> bool:
        """Whether a register holds what was looked up in a dictionary, also by a function that gives it back."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] not in (op.CALL, op.INVOKE) or function.is_cpp:
            return False
        if _looks_up(function, register):
            return True
        callees = self.facts.callee_functions(function, one)
        ends = ((callee, end[2]) for callee in callees for end in callee.by_opcode[op.RETURN])
        return any(_looks_up(*end) for end in ends)

    def _of(self, root: Held, depth: int) -> Values | None:
        one, function = root.instruction, root.function
        if one is None:
            return None
        if one[0] == op.CONST:
            return frozenset({function.unit.ir.constants[one[3]]})
        if one[0] == op.LOAD:
            return self._captured(root, function.unit.ir.constants[one[3]])
        if function.is_cpp:
            return None
        if one[0] in (op.CALL, op.INVOKE):
            return self._converted(root, one, depth) if one[0] == op.CALL else self._spelled(root, one, depth)
        if one[0] == op.COMPARE:
            return self._compared(root, one, depth)
        if one[0] == op.UNARY and function.text(one[3]) == "not":
            values = self._in(root._replace(register=one[4]), depth - 1)
            return frozenset(not value for value in values) if values is not None else None
        return None

    def _captured(self, root: Held, cell: object) -> Values | None:
        """The constant that a variable of a function around holds in the closure that a call calls."""
        function, entered = root.function, entered_by(root.context, root.function)
        if function.is_cpp or entered is None or not isinstance(cell, tuple) or cell[1] == function.code.number:
            return None
        values = captured(self.facts, entered, function, cell)
        held = {value.value for value in values if isinstance(value, Constant)}
        return frozenset(held) if len(values) == len(held) == 1 else None

    def _converted(self, root: Held, one: Instruction, depth: int) -> Values | None:
        """The same of ``bool(x)`` and ``int(x)``."""
        name = root.function.dotted(one[3]) if len(one) == 6 else ""
        if name == "str":
            return self._texts(root._replace(register=one[5]), depth)
        keeping = _KEEPING.get(name)
        kept = self._in(root._replace(register=one[5]), depth - 1) if keeping is not None else None
        is_number = kept is not None and all(isinstance(each, (bool, int, float)) for each in kept)
        return frozenset(map(keeping, kept)) if keeping is not None and kept is not None and is_number else None

    def _spelled(self, root: Held, one: Instruction, depth: int) -> Values | None:
        """The same of ``x.lower()``."""
        spelling = _SPELLING.get(root.function.text(one[4])) if len(one) == 6 else None
        texts = self._texts(root._replace(register=one[3]), depth) if spelling is not None else None
        return frozenset(spelling(text) for text in texts) if spelling is not None and texts is not None else None

    def _texts(self, held: Held, depth: int) -> frozenset[str] | None:
        """The texts that a register may be; None where something else may be."""
        values = self._in(held, depth - 1)
        texts = frozenset(value for value in values or () if isinstance(value, str))
        return texts if values is not None and len(texts) == len(values) else None

    def _compared(self, root: Held, one: Instruction, depth: int) -> Values | None:
        """What a comparison may give."""
        function, sign = root.function, root.function.text(one[3])
        left = self._in(root._replace(register=one[4]), depth - 1)
        display = function.definitions[one[5]] if one[5] >= 0 and sign in ("in", "not in") else None
        if left is None or sign not in _SIGNS or (sign in ("in", "not in")) != (display is not None):
            return None
        right = self._in(root._replace(register=one[5]), depth - 1) if display is None else self._elements(root, display, depth)
        if right is None or len(left) * len(right) > _MOST:
            return None
        try:
            return frozenset(bool(_SIGNS[sign](*pair)) for pair in product(left, right))
        except TypeError:
            return None

    def _elements(self, root: Held, display: Instruction, depth: int) -> Values | None:
        """The one set of all elements of a list or tuple that is written out, if each of them is one constant."""
        parts = [self._in(root._replace(register=each), depth - 1) for each in display[4:]] if display[0] == op.BUILD else []
        return frozenset({_joined(parts)}) if parts and all(part is not None and len(part) == 1 for part in parts) else None


def _looks_up(function: Function, register: int) -> bool:
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.INVOKE and function.text(one[4]) in function.known("looks-up")


def _joined(parts: Iterable[Values | None]) -> Values | None:
    """All of several; None where one is not known."""
    every = list(parts)
    known = [part for part in every if part is not None]
    return frozenset[object]().union(*known) if len(known) == len(every) else None


def constants_of(facts: Facts) -> Constants:
    """The constants of a program, which are found once for all that ask."""
    return facts.shared.one_of(Constants, facts)
