"""What a path knows of a value that callers have passed: the register that the outermost of them has it in."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import COPIES, DICT, LIST
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import all_given, given_to


def as_passed(transfer: Transfer, frame: Frame, register: int) -> tuple[Frame, int]:
    """The frame in which a path names a value first, and its register there: a parameter is what the call on the path gives for it."""
    while frame.caller is not None and frame.call is not None:
        index = _parameter(transfer, frame.function, register)
        given = given_to(frame.caller.function, frame.call, frame.function, index) if index is not None else None
        if given is None or given < 0:
            break
        frame, register = frame.caller, given
    return frame, register


def default_on(transfer: Transfer, frame: Frame, register: int) -> tuple[Function, int] | None:
    """Where the default stands that a path has for a value: a parameter for which the call on the path gives nothing."""
    index = _parameter(transfer, frame.function, register)
    if index is None or frame.caller is None or frame.call is None:
        return None
    caller, call = frame.caller.function, frame.call
    is_spread = call[0] in (op.CALL, op.INVOKE) and any(kind in (LIST, DICT) for kind, _ in all_given(caller, call, frame.function))
    is_left_out = not is_spread and given_to(caller, call, frame.function, index) is None
    return frame.function.default_place(index) if is_left_out else None


def _parameter(transfer: Transfer, function: Function, register: int) -> int | None:
    """The number of the parameter that a register holds, where no call may have put something else there."""
    found = register
    while found >= 0 and (one := function.definitions[found]) is not None and one[0] in COPIES:
        found = one[COPIES[one[0]]]
        if one[0] == op.REBIND and set(transfer.values(function, one[2])) != set(transfer.values(function, found)):
            return None
    one = function.definitions[found] if found >= 0 else None
    is_receiver = one is not None and one[0] == op.PARAM and one[3] == 0 and function.has_receiver
    return int(one[3]) if one is not None and one[0] == op.PARAM and not is_receiver else None
