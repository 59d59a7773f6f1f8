"""Waits of the host that several fixes insert."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from streamlint.findings import Fix, Span
from streamlint.fix.code import SAFE, Code, NotThere, fix
from streamlint.fix.cpp_code import CppCode
from streamlint.fix.launches import stream_of
from streamlint.fix.python_code import PythonCode

MESSAGE = "wait for the copy"


def host_waits(copy: Span, use: Span, code: Code) -> Iterator[Fix]:
    """The host waits for the copy at one place before it does what stands at another."""
    if copy.file != code.file:
        return
    if isinstance(code, CppCode):
        yield from _of_cpp(copy, use, code)
        return
    first, second = code.statement_at(copy), code.statement_at(use)
    for place in code.outwards(second, first):
        for attempt in (_at_once, _event, _event_of_rounds, _stream):
            try:
                yield attempt(first, place, code)
            except NotThere:
                continue


def _at_once(first: cst.CSTNode, second: cst.CSTNode, code: PythonCode) -> Fix:
    """The use is the next statement: there is nothing to do meanwhile."""
    if not code.follows(second, first):
        raise NotThere
    return _stream(first, second, code)


def _event(first: cst.CSTNode, second: cst.CSTNode, code: PythonCode) -> Fix:
    """The copy has run wherever the host comes to the use."""
    if not code.dominates(first, second):
        raise NotThere
    torch, event = code.called("torch", "torch"), code.fresh("copied")
    recorded = code.after(first, f"{event} = {torch}.cuda.current_stream().record_event()")
    return fix(MESSAGE, SAFE, recorded, code.before(second, f"{event}.synchronize()"))


def _event_of_rounds(first: cst.CSTNode, second: cst.CSTNode, code: PythonCode) -> Fix:
    """The use comes before the copy of the same loop: an event that nobody has recorded holds nobody up in the first round."""
    loop = code.loop_of(second)
    if loop is None or not any(loop is up for up in code.above(first)) or code.function_of(first) is not code.function_of(second):
        raise NotThere
    torch, event = code.called("torch", "torch"), code.fresh("copied")
    made = code.before(loop, f"{event} = {torch}.cuda.Event()")
    return fix(MESSAGE, SAFE, made, code.before(second, f"{event}.synchronize()"), code.after(first, f"{event}.record()"))


def _stream(_: cst.CSTNode, second: cst.CSTNode, code: PythonCode) -> Fix:
    torch = code.called("torch", "torch")
    return fix(MESSAGE, SAFE, code.before(second, f"{torch}.cuda.current_stream().synchronize()"))


def _of_cpp(copy: Span, use: Span, code: CppCode) -> Iterator[Fix]:
    """The stream of the copy is waited for, before the loops that do not hold the copy."""
    call, statement = code.call_at(copy), code.statement_at(use)
    stream = stream_of(call, code)
    if not code.knows(stream, call, statement):
        return
    for place in code.outwards(statement, call):
        yield fix(f"wait for stream `{stream}`", SAFE, code.before(place, f"cudaStreamSynchronize({stream});"))
