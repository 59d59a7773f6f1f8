"""A line that binds a function to Python: why no rule about the GIL speaks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlint.interpreter.bindings import Binding, bindings_of, keeps_gil
from streamlint.interpreter.index import File
from streamlint.silence.answer import Answer

if TYPE_CHECKING:
    from streamlint.silence.line import Line


def tell_bindings(answer: Answer, line: Line) -> None:
    """What is known of the bindings at the line."""
    for file in [f for f in line.program.files.values() if f.path == line.path]:
        for effect in ("bind", "operator"):
            for binding in bindings_of(file, effect):
                if binding.thunk.at[0] <= line.rows[1] and line.rows[0] <= binding.thunk.at[2]:
                    _tell(answer, line, file, binding)


def _tell(answer: Answer, line: Line, file: File, binding: Binding) -> None:
    codes = [check.code for check in line.checks if check.from_python]
    row = binding.thunk.at[0]
    if binding.effect == "operator":
        why = "PyTorch's dispatcher lets the GIL go around the operators that are registered here"
    elif not keeps_gil(file, binding):
        why = "the binding lets the GIL go around what it calls, or names something out of view that may"
    else:
        why = ""
    if why:
        for code in codes:
            answer.add("facts", why, code, row)
        return
    for code in codes:
        if not any(reason.code == code for reason in answer.reasons):
            answer.add("facts", "nothing that this binding calls, as far as it is at hand, may wait for the device", code, row)
