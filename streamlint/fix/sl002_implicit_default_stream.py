"""SL002: pass the stream in scope, or PyTorch's current one; give it to the handle of a library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint.findings import Edit, Finding, Fix, Span
from streamlint.fix.base import UNSAFE, NotThere, fix
from streamlint.fix.code import Code
from streamlint.fix.cpp_code import CppCode
from streamlint.fix.handles import is_of_library, library_call
from streamlint.fix.launches import NULLS, call_with_stream, stream_of, with_stream

if TYPE_CHECKING:
    from tree_sitter import Node

OF_NOW = "at::cuda::getCurrentCUDAStream()"
OF_TORCH = re.compile(r"#\s*include\s*[<\"](?:torch/|ATen/|c10/)")
CURRENT = re.compile(r"#\s*include\s*[<\"](?:ATen/cuda/CUDAContext\.h|c10/cuda/CUDAStream\.h)")


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """The stream as the last launch parameter or argument, at each place that the finding reports: the one that the function knows,
    else the current one of PyTorch."""
    if not isinstance(code, CppCode):
        return
    places = [span for span in dict.fromkeys((finding.span, *finding.covers)) if span.file == code.file]
    if is_of_library(finding):
        yield from _of_handles(finding, places, code)
        return
    calls = [call_with_stream(code.node_at(span), code) for span in places]
    known = {stream for call in calls for stream in _known(finding, call, code)}
    if len(known) > 1:
        known &= _of_the_other(finding, calls, code)
    if len(known) == 1:  # of several streams nobody knows which is meant
        (stream,) = known
        yield fix(f"pass `{stream}`", UNSAFE, *(with_stream(call, stream, code) for call in calls))
    elif not known and OF_TORCH.search(code.text):
        more = [] if CURRENT.search(code.text) else [_include(code)]
        yield fix(f"pass `{OF_NOW}`", UNSAFE, *more, *(with_stream(call, OF_NOW, code) for call in calls))


def _of_handles(finding: Finding, places: list[Span], code: CppCode) -> Iterator[Fix]:
    """The handle is given the stream before each of the calls: where it was made, the stream may not be there yet."""
    calls = [library_call(code.node_at(span), code) for span in places]
    known = {stream for call, _, _ in calls for stream in _known(finding, call, code)}
    if len(known) > 1:
        return
    stream = next(iter(known), OF_NOW if OF_TORCH.search(code.text) else "")
    if stream:
        more = [_include(code)] if stream == OF_NOW and not CURRENT.search(code.text) else []
        set_streams = {code.before(code.statement_of(call), f"{setter}({handle}, {stream});"): None for call, handle, setter in calls}
        yield fix(f"give the handle `{stream}`", UNSAFE, *more, *set_streams)


def _of_the_other(finding: Finding, calls: list[Node], code: CppCode) -> set[str]:
    """The streams of the operations that the witness path shows in conflict with these calls, in the same function."""
    found = set()
    for place in {span for pair in finding.pairs for span in pair if span.file == code.file}:
        try:
            other = call_with_stream(code.node_at(place), code)
            stream = stream_of(other, code)
        except NotThere:
            continue
        if stream not in NULLS and all(code.function_of(other) == code.function_of(call) for call in calls):
            found.add(stream)
    return found


def _known(finding: Finding, call: Node, code: CppCode) -> list[str]:
    """The streams that the function around a call is given, declares, or names."""
    function = code.function_of(call)
    known, body = code.streams_in(function), code.source(function)
    for step in finding.trail:  # `cudaStreamCreate(&stream_)`
        try:
            made = code.call_at(step.span)
        except NotThere:
            continue
        given = code.arguments(made) if code.callee(made).startswith("cudaStreamCreate") else []
        name = code.source(given[0]).lstrip("&( ") if given else ""
        if name.isidentifier() and (re.search(rf"\b{name}\b", body) or _same_class(made, call, code)):
            known.append(name)
    return known


def _same_class(one: Node, two: Node, code: CppCode) -> bool:
    """Whether two nodes stand in the methods of one class: what a constructor makes there is a member."""
    kinds = ("class_specifier", "struct_specifier")
    around = [next((up for up in code.upwards(node) if up.type in kinds), None) for node in (one, two)]
    return around[0] is not None and around[0] == around[1] and code.function_of(one) != code.function_of(two)


def _include(code: CppCode) -> Edit:
    rows = [row for row, line in enumerate(code.lines, 1) if OF_TORCH.search(line)]
    return code.lines_after(rows[-1], "#include <ATen/cuda/CUDAContext.h>")
