"""What a path knows of conditions: constants, arguments and template arguments of its calls, and statuses of the runtime.

No hazard is looked for behind an error of CUDA: a call of the runtime or driver gives success.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import COPIES
from streamlint.facts.code.objects import CppName, Site
from streamlint.facts.graph.conditions import Conditions as Branches
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.paths.kept_flags import KeptFlags
from streamlint.ordering.paths.kinds import Kinds
from streamlint.ordering.paths.set_flags import compared_with_none
from streamlint.support.memo import memoized
from streamlint.transfer.transfer import Transfer
from streamlint.waits.constants import constants_of
from streamlint.waits.entered import Context
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import Key, alike, register_of

_STATUS_LIBRARIES = frozenset({"cuda-runtime", "cuda-driver", "cuda-libraries"})
_STATUS_TYPES = frozenset({"cudaError_t", "cudaError", "CUresult"})
_DEEPEST = 6
_LENGTH_OF_ISINSTANCE = 7


class Frame(NamedTuple):
    """A function that a path is in; ``caller`` and ``call`` are None in the function with which the path begins, or that it went up to."""

    function: Function
    caller: Frame | None
    call: Instruction | None
    depth: int

    def runs(self, function: Function) -> bool:
        """Whether a function is this one, or one that waits for it to return."""
        return self.of(function) is not None

    def may_enter(self, function: Function) -> bool:
        """Whether a path goes into a function from here: into one that calls itself once more, as what it is given then decides its end."""
        if self.function is not function:
            return not self.runs(function)
        return self.caller is None or not self.caller.runs(function)

    def of(self, function: Function) -> Frame | None:
        """The innermost frame of a function on the path."""
        frame: Frame | None = self
        while frame is not None and frame.function is not function:
            frame = frame.caller
        return frame

    @property
    def root(self) -> Frame:
        """The function with which the path begins, or that it went up to."""
        frame = self
        while frame.caller is not None:
            frame = frame.caller
        return frame

    @property
    def calls(self) -> tuple[Site, ...]:
        """The calls that are in progress, the outermost first."""
        calls: list[Site] = []
        frame = self
        while frame.caller is not None and frame.call is not None:
            calls.insert(0, Site(frame.caller.function, frame.call))
            frame = frame.caller
        return tuple(calls)


def context_of(frame: Frame) -> Context:
    """The functions that a path is in, each with the call that has entered it, the outermost first."""
    found: list[tuple[Function, Site]] = []
    while frame.caller is not None and frame.call is not None:
        found.insert(0, (frame.function, Site(frame.caller.function, frame.call)))
        frame = frame.caller
    return tuple(found)


class Conditions:
    """The truth of conditions on paths."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self._kinds = Kinds(transfer)
        self.constants = constants_of(transfer.facts)
        self.kept_flags = transfer.one_of(KeptFlags, transfer)
        self._branches: dict[Function, Branches] = {}
        self._rare: dict[tuple[Function, int], frozenset[int]] = {}

    def is_rare(self, function: Function, block: int, after: int) -> bool:
        """Whether a branch leads to a block in some rounds only: a path through the others is no guess."""
        if (function, block) not in self._rare:
            branches = self._branches.get(function)
            if branches is None:
                branches = self._branches[function] = Branches(self.facts, function)
            self._rare[function, block] = frozenset(one.after for one in branches.rare_at([block], by_values=False))
        return after in self._rare[function, block]

    def truth(self, frame: Frame, register: int) -> bool | None:
        """Whether a condition holds in a function as its callers on the path call it; None where that is not known."""
        function = frame.function
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            return None
        if not function.is_cpp and (is_there := self._says_cuda(function, one)) is not None:
            return is_there
        if one[0] in (op.CALL, op.INVOKE) and not function.is_cpp and (is_so := self._kinds.truth(frame, one)) is not None:
            return is_so
        if (is_none := self._none_compared(frame, one)) is not None:
            return is_none
        if self._is_no_kind(frame, one):
            return False
        if one[0] == op.NAME and function.is_cpp:
            found = self._template_argument(frame, function.text(one[3]))
            return found if found is not None else self._is_there(function, register)
        holds = self.constants.truth(function, register, context_of(frame))
        return holds if holds is not None else self.as_success(function, register)

    def at_best(self, function: Function, register: int) -> bool | None:
        """The truth of a condition that asks whether calls of CUDA have succeeded, or a device of CUDA is there; None of any other."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or function.is_cpp:
            return self.as_success(function, register)
        return self._says_cuda(function, one)

    def as_success(self, function: Function, register: int, depth: int = _DEEPEST) -> bool | None:
        """The truth of a condition that asks for statuses of calls of CUDA alone, where all are success; None of any other."""
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.COMPARE:
            return self._compared(function, one)
        if one is not None and one[0] == op.CAST and depth and one[4] >= 0:
            return self.as_success(function, one[4], depth - 1)
        if one is not None and one[0] == op.PHI and depth and not self.is_status(function, register):
            parts = {self.as_success(function, part, depth - 1) for part in one[3:]}
            return parts.pop() if len(parts) == 1 else None
        return False if self.is_status(function, register) else None

    def _is_there(self, function: Function, register: int) -> bool | None:
        """C++: a variable that leads to a function of the driver: code asks whether the driver has it, and goes on where it has."""
        values = self.transfer.values(function, register)
        rows = [self.transfer.facts.cpp_models.call(value.name) if isinstance(value, CppName) else None for value in values]
        return True if rows and None not in rows else None

    @cached_property
    def _asking(self) -> frozenset[str]:
        """The names of functions that say whether there is a CUDA device."""
        return self.transfer.names({"none"}, _asks_for_cuda)

    def _says_cuda(self, function: Function, one: Instruction) -> bool | None:
        """Whether a condition that asks for CUDA holds: what a path follows is on a device of it. None where it asks for something else."""
        if one[0] == op.ATTR and function.text(one[4]) == "is_cuda":
            return True
        if one[0] == op.COMPARE and function.text(one[3]) in ("==", "!="):
            words = (function.constant(register) for register in one[4:6])
            if any(isinstance(word, str) and word.partition(":")[0] == "cuda" for word in words):
                return function.text(one[3]) == "=="
        if one[0] == op.INVOKE and function.text(one[4]) in self._asking:
            answers = (call.row.get("asks_for_cuda") for call in self.transfer.libraries(function, one) if call.row is not None)
            return next((bool(answer) for answer in answers if answer is not None), None)
        return None

    def given(self, frame: Frame) -> tuple[object, ...]:
        """What decides conditions in a function as its caller calls it: the constants that it is given, and template arguments."""
        function, caller, call = frame.function, frame.caller, frame.call
        if caller is None or call is None:
            return ()
        found = [self._decides(function, index, context_of(frame)) for index in range(len(function.code.parameters))]
        return (*found, caller) if function.code.template else tuple(found)

    def _decides(self, function: Function, index: int, context: Context) -> object:
        """What decides conditions of what a call gives for a parameter: its constants, or whether it is None."""
        register = next((one[2] for one in function.by_opcode[op.PARAM] if one[3] == index), op.NONE)
        values = self.constants.values(function, register, context)
        return repr(values) if values is not None else self.constants.is_none(function, register, context)

    def _none_compared(self, frame: Frame, one: Instruction) -> bool | None:
        """Whether a comparison of a parameter with None holds, as the call on the path gives the parameter."""
        compared = compared_with_none(frame.function, one[2]) if one[0] == op.COMPARE else None
        if compared is None or (frame.function.is_cpp and not _compares_parameter(frame.function, one)):
            return None
        is_none = self.constants.is_none(frame.function, compared[0], context_of(frame))
        return is_none if is_none is None else is_none == compared[1]

    def _is_no_kind(self, frame: Frame, one: Instruction) -> bool:
        """Whether a call asks what is None on the path whether it is an object of a class, or of several, that it names."""
        function = frame.function
        if one[0] != op.CALL or len(one) != _LENGTH_OF_ISINSTANCE or function.dotted(one[3]) != "isinstance":
            return False
        kind = function.definitions[one[6]]
        kinds = [function.definitions[each] for each in kind[4:]] if kind is not None and kind[0] == op.BUILD else [kind]
        is_named = all(each is not None and each[0] in (op.NAME, op.ATTR) for each in kinds)
        return is_named and self.constants.is_none(function, one[5], context_of(frame)) is True

    def _compared(self, function: Function, one: Instruction) -> bool | None:
        """A status that is compared with success."""
        operator = function.text(one[3])
        if operator not in ("==", "!="):
            return None
        for status, other in (one[4:6], one[5:3:-1]):
            if self._is_success(function, other) and self.is_status(function, status):
                return operator == "=="
        return None

    def _is_success(self, function: Function, register: int) -> bool:
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.CONST:
            return bool(function.unit.ir.constants[one[3]] == 0)
        models = self.facts.cpp_models if function.is_cpp else self.facts.models
        return models.constants.get(function.dotted(register)) == "success"

    def is_status(self, function: Function, register: int, depth: int = _DEEPEST) -> bool:
        """Whether a register holds the status of a call of CUDA."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth == 0:
            return False
        if one[0] in (op.COPY, op.CAST, op.REBIND):
            return self.is_status(function, one[COPIES[one[0]]], depth - 1)
        if one[0] in (op.PHI, op.LOAD):
            parts = one[3:] if one[0] == op.PHI else [use[3] for use in function.by_opcode[op.STORE] if use[2] == one[3]]
            return bool(parts) and all(self.is_status(function, part, depth - 1) for part in parts)
        if one[0] == op.PARAM:
            kind = function.code.parameters[one[3]].type
            return kind is not None and str(kind[0]) in _STATUS_TYPES
        calls = self.transfer.modelled(function, one) if one[0] == op.CALL else ()
        return any(call.row.library in _STATUS_LIBRARIES and call.row.effect != "query" for call in calls)

    # --- templates and arguments

    def _template_argument(self, frame: Frame, name: str, depth: int = _DEEPEST) -> bool | None:
        function = frame.function
        if name not in function.code.template or frame.caller is None or frame.call is None or depth == 0:
            return None
        given = frame.caller.function.code.templates.get(frame.call[1], ())
        place = function.code.template.index(name)
        held = given[place] if place < len(given) else None
        if isinstance(held, tuple):
            return self._template_argument(frame.caller, str(held[0]), depth - 1)
        return held if isinstance(held, bool) else None

    def is_given(self, function: Function, key: Key) -> bool:
        """Whether a condition is a parameter, a template parameter or a variable of a function around, or compares a parameter with a
        constant: whoever calls decides it."""
        if len(key) > 1 and key[0] == op.COMPARE:
            return key in self._comparisons(function)
        if len(key) == 1:
            return self._parameter(function, key) is not None
        return key[0] == op.NAME or (isinstance(cell := _variable(function, key), tuple) and cell[1] != function.code.number)

    @memoized
    def _comparisons(self, function: Function) -> dict[Key, int]:
        """The comparisons of parameters with constants, by what they say."""
        asked = (one for one in function.by_opcode[op.COMPARE] if _compares_parameter(function, one))
        return {alike(function, one[2]): one[2] for one in asked}

    def _parameter(self, function: Function, key: Key) -> int | None:
        one = function.definitions[int(str(key[0]))] if len(key) == 1 else None
        return one[3] if one is not None and one[0] == op.PARAM else None

    def above(
        self, frame: Frame, decided: Collection[tuple[Frame, Key, bool]], caller: Frame, call: Instruction
    ) -> frozenset[tuple[Frame, Key, bool]] | None:
        """What was decided of parameters, as the caller says it; None where the call says otherwise."""
        found = set()
        for key, holds in ((key, holds) for where, key, holds in decided if where == frame):
            said = self._by_caller(frame.function, key, caller, call)
            if isinstance(said, tuple):
                found.add((caller, said, holds))
            elif said not in (None, holds):
                return None
        return self.kept_flags.behind(frame, decided, caller, call).union(found)

    def _by_caller(self, function: Function, key: Key, caller: Frame, call: Instruction) -> Key | bool | None:
        """Whether a condition holds by what a call gives, or else the caller's condition that decides it; None if neither is known."""
        if len(key) > 1 and key[0] == op.NAME and str(key[1]) in function.code.template:
            held = _template_argument(function, str(key[1]), caller.function, call)
            if isinstance(held, tuple):
                return (op.NAME, str(held[0]), *key[2:]) if held[0] in caller.function.code.template else None
            return held if isinstance(held, bool) else None
        if is_kept_variable(function, key, caller.function):
            return key
        register = self._register(function, key)
        said = self.truth(Frame(function, caller, call, caller.depth + 1), register) if register is not None else None
        if said is not None or len(key) > 1 or (index := self._parameter(function, key)) is None or call[0] not in (op.CALL, op.INVOKE):
            return said
        given = operand_of(caller.function, call, function, index)
        return alike(caller.function, given) if given is not None and given >= 0 else None

    def _register(self, function: Function, key: Key) -> int | None:
        """A register of a condition that callers decide."""
        return self._comparisons(function).get(key) if key[0] == op.COMPARE else register_of(function, key)


def _template_argument(function: Function, name: str, caller: Function, call: Instruction) -> object:
    """C++: what a call gives for a parameter of a template; None where it leaves that to be deduced."""
    given = caller.code.templates.get(call[1], ())
    place = function.code.template.index(name)
    return given[place] if place < len(given) else None


def is_kept_variable(function: Function, key: Key, caller: Function) -> bool:
    """Whether a condition is a variable that a function shares with its caller, as closures do, and that is only set once."""
    cell = _variable(function, key)
    home = function.unit.function(cell[1]) if isinstance(cell, tuple) else None
    if home is None or caller not in home.below:
        return False
    stores = [one for each in home.below for one in each.by_opcode[op.STORE] if each.unit.ir.constants[one[2]] == cell]
    return len(stores) == 1


def _variable(function: Function, key: Key) -> object:
    """The variable that a condition is, which closures share."""
    held = (function.unit.ir.constants[one[3]] for one in function.by_opcode[op.LOAD]) if len(key) > 1 and key[0] == op.LOAD else ()
    return next((each for each in held if str(each) == key[1]), None)


def _compares_parameter(function: Function, one: Instruction) -> bool:
    """Whether a comparison is one of a parameter with a constant."""
    sides = [function.definitions[each] if each >= 0 else None for each in one[4:6]]
    return any(each is not None and each[0] == op.PARAM for each in sides) and any(
        each is not None and each[0] == op.CONST for each in sides
    )


def _asks_for_cuda(row: Row) -> bool:
    return row.get("asks_for_cuda") is not None
