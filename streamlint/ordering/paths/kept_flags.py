"""Members that constructors alone set: what a caller has found out about one holds in what it calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.deciding import deciding
from streamlint.ordering.paths.topics import implied
from streamlint.support.memo import memoized
from streamlint.waits.constants import constants_of
from streamlint.waits.entered import Held
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import Key, alike, register_of

if TYPE_CHECKING:
    from streamlint.ordering.paths.conditions import Frame
    from streamlint.transfer.transfer import Transfer

_HIGHEST = 4
"""Calls above one another that are asked what they have decided before a path begins."""


_ASKING = frozenset({op.BRANCH, op.COMPARE, op.UNARY})
Decided = frozenset[tuple["Frame", Key, bool]]


class KeptFlags:
    """The truth of members that constructors keep."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.constants = constants_of(transfer.facts)

    def above(self, frame: Frame, key: Key, decided: Iterable[tuple[Frame, Key, bool]]) -> bool | None:
        """The truth of a condition about such members that a caller on the path has decided, or all callers of where it begins."""
        while frame.caller is not None and frame.call is not None:
            passed = self._as_passed(frame.function, key, Site(frame.caller.function, frame.call))
            if passed is None:
                return None
            key, frame = passed, frame.caller
            for where, asked, holds in decided:
                if where == frame and (truth := implied(asked, holds, key)) is not None:
                    return truth
        return self._by_callers(frame.function, key, _HIGHEST)

    def is_shared(self, function: Function, key: Key) -> bool:
        """Whether a condition is one about a member that constructors keep, which other functions ask about as well."""
        name = _member(key)
        if name is None or function.is_cpp or not self.constants.given.members.is_fixed(name):
            return False
        return any(other is not function for other in self._asking(name))

    @memoized
    def _asking(self, name: str) -> frozenset[Function]:
        """The functions whose conditions ask about an attribute of a name."""
        units = (unit for unit in self.transfer.facts.program.mentioning(name) if not unit.is_cpp)
        uses = (use for unit in units for use in unit.attribute_uses.get(name, ()) if use[1][0] == op.ATTR)
        asked = (one for one, read in uses if any(use[0] in _ASKING for use in one.uses[read[2]]))
        return frozenset(asked)

    def behind(self, frame: Frame, decided: Iterable[tuple[Frame, Key, bool]], caller: Frame, call: Instruction) -> Decided:
        """What a function has decided of such members, as its caller says it behind the call."""
        mine = [(key, holds) for where, key, holds in decided if where == frame and self.is_shared(frame.function, key)]
        said = ((self._as_passed(frame.function, key, Site(caller.function, call)), holds) for key, holds in mine)
        return frozenset((caller, key, holds) for key, holds in said if key is not None)

    @memoized
    def _by_callers(self, function: Function, key: Key, depth: int) -> bool | None:
        """What all calls of a function have decided of a condition."""
        truths = {self._by_caller(function, key, Site(*call), depth) for call in self.transfer.callers(function)} if depth else set()
        return truths.pop() if len(truths) == 1 else None

    def _by_caller(self, function: Function, key: Key, call: Site, depth: int) -> bool | None:
        passed = self._as_passed(function, key, call)
        if passed is None:
            return None
        said = deciding(call.function, call.function.blocks[call.instruction])
        truths = {truth for asked, holds in said if (truth := implied(asked, holds, passed)) is not None}
        return truths.pop() if len(truths) == 1 else self._by_callers(call.function, passed, depth - 1)

    def _as_passed(self, function: Function, key: Key, call: Site) -> Key | None:
        """A condition as a caller says it; None where it does not hang on what the caller gives, and on members of that, alone."""
        call = _made(call)
        if function.is_cpp or call.instruction[0] not in (op.CALL, op.INVOKE):
            return None
        if len(key) == 1 or key[0] == op.LOAD:
            return _as_given(function, register_of(function, key), call)
        if key[0] == op.ITEM and isinstance(key[1], tuple) and isinstance(key[2], tuple) and key[2][0] == op.CONST:
            holder = self._as_passed(function, key[1], call)
            return self._entry(call.function, (key[0], holder, *key[2:])) if holder is not None else None
        if key[0] == op.COMPARE and len(key) > 3 and isinstance(key[2], tuple) and isinstance(key[3], tuple) and key[3][0] == op.CONST:
            left = self._as_passed(function, key[2], call)
            return (*key[:2], left, *key[3:]) if left is not None else None
        if key[0] != op.ATTR or not self.constants.given.members.is_fixed(str(key[1])) or not isinstance(key[2], tuple):
            return None
        base = self._as_passed(function, key[2], call)
        return (key[0], key[1], base, *key[3:]) if base is not None else None

    def _entry(self, function: Function, key: Key) -> Key:
        """What is asked of an entry of a dictionary, by what the display gives for it that makes this."""
        register = register_of(function, key[1]) if isinstance(key[1], tuple) else None
        parts = (
            self.constants.given.under(Held(function, register), key[2][1]) if register is not None and isinstance(key[2], tuple) else None
        )
        entry = parts[0] if parts is not None and len(parts) == 1 else None
        return alike(function, entry.register) if entry is not None and entry.function is function else key


def _as_given(function: Function, register: int | None, call: Site) -> Key | None:
    """What a caller gives for the parameter that a register holds, as it says it; None where it holds none."""
    parameter = function.kept_parameter(register) if register is not None else op.NONE
    one = function.definitions[parameter] if parameter >= 0 else None
    given = operand_of(call.function, call.instruction, function, one[3]) if one is not None else None
    return alike(call.function, given) if given is not None and given >= 0 else None


def _member(key: Key) -> str | None:
    """The attribute that a condition asks about; None of any other one."""
    asked = key[2] if key[0] == op.COMPARE and len(key) > 3 else key
    return str(asked[1]) if isinstance(asked, tuple) and len(asked) > 2 and asked[0] == op.ATTR else None


def _made(call: Site) -> Site:
    """The call that has made the generator which an instruction enters or leaves as a context manager; or that instruction."""
    function, one = call.function, call.instruction
    definition = function.definitions[one[3]] if one[0] in (op.ENTER, op.EXIT) and one[3] >= 0 else None
    return Site(function, definition) if definition is not None else call
