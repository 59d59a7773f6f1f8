"""A line that binds a function to Python: why no rule about the GIL speaks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlint.checks.base import registry
from streamlint.hazards.context import span_of
from streamlint.ordering.threads.entries import Entries
from streamlint.silence.answer import Answer

if TYPE_CHECKING:
    from streamlint.silence.line import Line


def tell_bindings(answer: Answer, line: Line) -> None:
    """What is known of the bindings at the line."""
    codes = [check.code for check in registry().values() if check.from_python]
    for unit in line.units:
        for binding in Entries(line.context.transfer).bindings(unit) if unit.is_cpp else ():
            span = span_of(binding.site)
            if not line.holds(span):
                continue
            if binding.is_operator:
                why = "PyTorch's dispatcher lets the GIL go around the operators that are registered here"
            elif binding.lets_go:
                why = "the binding lets the GIL go around what it calls, or names unknown code that may"
            else:
                why = "nothing that this binding is known to call may wait for the device"
            for code in codes:
                if why and not any(reason.code == code for reason in answer.reasons):
                    answer.add("facts", why, code, span.row)
