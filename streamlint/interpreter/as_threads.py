"""Objects that are threads: whoever calls their other methods has started them, wherever that was."""

from __future__ import annotations

from streamlint import operations as ops
from streamlint.findings import Span
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.classes import find_method, library_bases
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Instance, Method, Value

_THREAD = "threading.Thread"
_OWN = frozenset({"__init__", "run", "start"})


def start_elsewhere(run: Run, receiver: Value | None, method: str) -> None:
    """Run what the object of a method does as a thread, if it is one that its constructor has not started."""
    if not isinstance(receiver, Instance) or receiver.file.is_cuda or method in _OWN:
        return
    if _THREAD not in library_bases(run, receiver.definition, receiver.file):
        return
    if any(isinstance(operation, ops.Spawn) for operation in run.machine.operations):
        return
    found = find_method(run, receiver.definition, receiver.file, "run")
    row = receiver.file.models.method(_THREAD, "start")
    if found is None or row is None:
        return
    from streamlint.interpreter.calls import invoke

    function, _, file = found
    place = (*function.at[:2], function.at[0], function.at[1] + len("def run"))
    invoke(run, Method(receiver, "start", row), Arguments(), CallSite(function, Span(file.path, *place), "start"))
