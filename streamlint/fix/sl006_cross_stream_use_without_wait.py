"""SL006: make the second stream wait for the first one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from streamlint.findings import Finding, Fix
from streamlint.fix.base import SAFE, fix
from streamlint.fix.code import Code
from streamlint.fix.cpp_code import CppCode
from streamlint.fix.launches import call_with_stream, stream_of
from streamlint.fix.python_code import PythonCode
from streamlint.fix.python_tree import FUNCTIONS, WITHS
from streamlint.fix.streams import entered_at, streams_of


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """A wait before the use, or before the ``with`` around it, where the other stream is still the current one."""
    if isinstance(code, CppCode):
        yield from _of_cpp(finding, code)
        return
    api = str(finding.facts.get("api"))
    use = code.statement_at(finding.span)
    that, this = streams_of(finding, code, use, "that stream: "), streams_of(finding, code, use, "this stream: ")
    for step in finding.trail[:1]:
        that = that or entered_at(step.span, code, use)
    this = this or entered_at(finding.span, code, use)
    for place in _places(use, code):
        for first in that or [""]:
            for second in this or [""]:
                for wait in _waits(api, first, second, code):
                    yield fix("make the stream wait", SAFE, code.before(place, wait))


def _places(use: ast.stmt, code: PythonCode) -> Iterator[ast.AST]:
    """Before the use; before each ``with`` and each loop around it, in its function."""
    yield use
    for up in code.above(use):
        if isinstance(up, FUNCTIONS):
            return
        if isinstance(up, (*WITHS, ast.For, ast.AsyncFor)):
            yield up


def _waits(api: str, first: str, second: str, code: PythonCode) -> Iterator[str]:
    """The second stream waits for the first; a stream without a name is the current one of the place."""
    if not first and not second:
        return
    if api == "torch":
        current = f"{code.called('torch', 'torch')}.cuda.current_stream()"
        yield f"{second or current}.wait_stream({first or current})"
    elif api == "cupy":
        cuda = f"{code.called('cupy', 'cupy')}.cuda"
        current = f"{cuda}.get_current_stream()"
        for event in ("", f"{cuda}.Event(disable_timing=True)"):
            yield f"{second or current}.wait_event({first or current}.record({event}))"


def _of_cpp(finding: Finding, code: CppCode) -> Iterator[Fix]:
    """An event on the first stream, which the second one waits for."""
    first = next(step.span for step in finding.trail if step.message.endswith("on another stream here"))
    made, use = call_with_stream(code.node_at(first), code), call_with_stream(code.node_at(finding.span), code)
    that, this = stream_of(made, code), stream_of(use, code)
    statement, event = code.statement_of(use), code.fresh("ready")
    if not code.knows(that, made, use):
        return
    lines = (
        f"cudaEvent_t {event};",
        f"cudaEventCreateWithFlags(&{event}, cudaEventDisableTiming);",
        f"cudaEventRecord({event}, {that});",
        f"cudaStreamWaitEvent({this}, {event}, 0);",
        f"cudaEventDestroy({event});",
    )
    yield fix("make the stream wait", SAFE, code.before(statement, *lines))
