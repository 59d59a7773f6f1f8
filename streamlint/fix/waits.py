"""Waits of the host that several fixes insert."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from streamlint.findings import Finding, Fix, Span
from streamlint.fix.base import SAFE, NotThere, fix
from streamlint.fix.code import Code
from streamlint.fix.cpp_code import CppCode
from streamlint.fix.launches import stream_of
from streamlint.fix.python_code import PythonCode
from streamlint.fix.python_tree import keyword

MESSAGE = "wait for the copy"


@dataclass(frozen=True, slots=True)
class _Words:
    """How a library writes it."""

    current: str  # the current stream
    record: str  # a method of a stream that returns an event
    event: str  # makes an event
    on: str = ""  # the stream that the copy names, where it is not the current one


def host_waits(finding: Finding, copy: Span, code: Code) -> Iterator[Fix]:
    """The host waits for the copy at one place before it does what stands at the finding's."""
    if copy.file != code.file:
        return
    if isinstance(code, CppCode):
        yield from _of_cpp(copy, finding.span, code)
        return
    first, second = code.statement_at(copy), code.statement_at(finding.span)
    if finding.facts.get("api") in ("numba", "cuda_python", "cuda-python"):
        yield from _of_named_stream(code.call_at(copy), first, second, code)
        return
    words = _words(str(finding.facts.get("api")), code.call_at(copy), first, second, code)
    for place in code.outwards(second, first):
        for attempt in (_at_once, _event, _event_of_rounds, _stream):
            try:
                yield attempt(first, place, code, words)
            except NotThere:
                continue


def _of_named_stream(copy: ast.Call, first: ast.stmt, second: ast.stmt, code: PythonCode) -> Iterator[Fix]:
    """numba and cuda-python: the stream that the copy names is waited for."""
    head, _, name = code.source(copy.func).rpartition(".")
    named = keyword(copy, "stream")
    plain = [given for given in copy.args if not isinstance(given, ast.Starred)]
    last = {"copy_to_host": 2, "copy_to_device": 2, "to_device": 2, "cudaMemcpyAsync": 5}.get(name, 0)
    value = named.value if named is not None else plain[-1] if last and len(plain) == last else None
    if not isinstance(value, ast.Name | ast.Attribute) or not _is_known_at(code.source(value), first, second, code):
        raise NotThere
    stream = code.source(value)
    wait = f"{head}.cudaStreamSynchronize({stream})" if name == "cudaMemcpyAsync" else f"{stream}.synchronize()"
    for place in code.outwards(second, first):
        yield fix(MESSAGE, SAFE, code.before(place, wait))


def _is_known_at(name: str, first: ast.stmt, second: ast.stmt, code: PythonCode) -> bool:
    if code.function_of(first) is code.function_of(second):
        return True
    return name.startswith("self.") and code.class_of(first) is code.class_of(second)


def _words(api: str, copy: ast.Call, first: ast.stmt, second: ast.stmt, code: PythonCode) -> _Words:
    if api == "torch":
        torch = code.called("torch", "torch")
        return _Words(f"{torch}.cuda.current_stream()", "record_event()", f"{torch}.cuda.Event()")
    if api != "cupy":
        raise NotThere
    cupy = code.called("cupy", "cupy")
    made = f"{cupy}.cuda.Event(disable_timing=True)"
    if (given := keyword(copy, "stream")) is None:
        return _Words(f"{cupy}.cuda.get_current_stream()", "record()", made)
    named = code.source(given.value)
    if not _is_known_at(named, first, second, code):
        raise NotThere
    return _Words(named, "record()", made, named)


def _at_once(first: ast.stmt, second: ast.stmt, code: PythonCode, words: _Words) -> Fix:
    """The use is the next statement: there is nothing to do meanwhile."""
    if not code.follows(second, first):
        raise NotThere
    return _stream(first, second, code, words)


def _event(first: ast.stmt, second: ast.stmt, code: PythonCode, words: _Words) -> Fix:
    """The copy has run wherever the host comes to the use."""
    if not code.dominates(first, second):
        raise NotThere
    event = code.fresh("copied")
    recorded = code.after(first, f"{event} = {words.current}.{words.record}")
    return fix(MESSAGE, SAFE, recorded, code.before(second, f"{event}.synchronize()"))


def _event_of_rounds(first: ast.stmt, second: ast.stmt, code: PythonCode, words: _Words) -> Fix:
    """The use comes before the copy of the same loop: an event that nobody has recorded holds nobody up in the first round."""
    loop = code.loop_of(second)
    if loop is None or not any(loop is up for up in code.above(first)) or code.function_of(first) is not code.function_of(second):
        raise NotThere
    event = code.fresh("copied")
    made = code.before(loop, f"{event} = {words.event}")
    return fix(MESSAGE, SAFE, made, code.before(second, f"{event}.synchronize()"), code.after(first, f"{event}.record({words.on})"))


def _stream(_: ast.stmt, second: ast.stmt, code: PythonCode, words: _Words) -> Fix:
    return fix(MESSAGE, SAFE, code.before(second, f"{words.current}.synchronize()"))


def _of_cpp(copy: Span, use: Span, code: CppCode) -> Iterator[Fix]:
    """The stream of the copy is waited for, before the loops that do not hold the copy."""
    call, statement = code.call_at(copy), code.statement_at(use)
    stream = stream_of(call, code)
    if not code.knows(stream, call, statement):
        return
    for place in code.outwards(statement, call):
        yield fix(f"wait for stream `{stream}`", SAFE, code.before(place, f"cudaStreamSynchronize({stream});"))
