"""C++: a function that several files define, of which a build takes one. A path runs the bodies of one choice of files."""

from __future__ import annotations

from streamlint.findings import Span
from streamlint.interpreter.linking import Body, nearest, shared_folders
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import FunctionValue
from streamlint.record import replace


def built(run: Run, callee: FunctionValue, span: Span) -> FunctionValue:
    """A function, or another body of it: that of the files which this path was built from, or those of the caller's side."""
    bodies = run.program.linker.alternatives(callee.function) if callee.file.is_cuda else ()
    if not bodies or not any(run.file.relevance.decides(function) for function, _ in bodies):
        return callee
    near = nearest(run.file, bodies)
    function, file = near[0] if len(near) == 1 else _decided(run, near, span)
    return replace(callee, function=function, file=file)


def _decided(run: Run, bodies: list[Body], span: Span) -> Body:
    """One answer a path for each side, so that all functions come from the same one."""
    folders = shared_folders(*(home.path for _, home in bodies))
    for body in bodies[:-1]:
        side = "/".join(body[1].path.replace("\\", "/").split("/")[: len(folders) + 1])
        atom = f"built from {side}"
        taken = run.decide(atom, True, span)
        run.leave_open(atom)
        if taken:
            return body
    return bodies[-1]
