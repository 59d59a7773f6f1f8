"""A line that binds a function to Python: why no rule about the GIL speaks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlint.findings import Finding, Span
from streamlint.interpreter.bindings import Binding, bindings_of, keeps_gil
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.index import File
from streamlint.interpreter.roots import Root
from streamlint.interpreter.run import Coverage
from streamlint.interpreter.trace import Trace
from streamlint.operations import Holding, Operation
from streamlint.silence import words
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
    _tell_run(answer, line, file, binding)


def _tell_run(answer: Answer, line: Line, file: File, binding: Binding) -> None:
    """The operations of the bound function that a rule would speak of, were the GIL held."""
    explorer = Explorer(line.program, Root(file, binding.thunk, None, binding), Coverage(), line.settings)
    holding, row = Holding("binding", Span(file.path, *binding.call.name_at)), binding.thunk.at[0]
    told = False
    for run in explorer.paths():
        trace = Trace(run.machine.operations, run.machine.conflicts, FileFacts(file))
        for operation in trace.operations:
            if operation.gil is None and (found := _with(line, operation, holding, trace)):
                where = f"line {operation.span.row}" if operation.span.file == line.path else f"{operation.span.file}:{operation.span.row}"
                answer.add("facts", f"the GIL is not held at {words.short(operation)} ({where})", found[0].code, operation.span.row)
                told = True
    if not told:
        for check in line.checks:
            if check.from_python:
                answer.add("facts", "nothing that this binding calls, as far as it is at hand, may wait for the device", check.code, row)


def _with(line: Line, operation: Operation, holding: Holding, trace: Trace) -> list[Finding]:
    """What would be said of an operation, were the GIL held by the binding."""
    operation.gil = holding
    try:
        return [f for check in line.checks if check.from_python for f in check.on_operation(operation, trace)]
    finally:
        operation.gil = None
