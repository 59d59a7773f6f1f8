"""Tests that only check: whoever fails them raises an exception, which the device could do as well (``torch._assert_async``)."""

from __future__ import annotations

from streamlint.facts.code.instructions import unnegated
from streamlint.facts.repetition.loops import Body
from streamlint.ir import Instruction
from streamlint.waits.questions import says_odd


def only_checks(body: Body, branch: Instruction) -> bool:
    """Whether one way of a branch does nothing but raise, and the test is none for numbers that are none: who asks so stops there."""
    register, _ = unnegated(body.function, branch[2])
    return any(after in body.lost for after in branch[3:5]) and says_odd(body.function, register) is None
