"""SL002: pass the stream at hand, or PyTorch's current one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from streamlint.findings import Edit, Finding, Fix
from streamlint.fix.code import UNSAFE, Code, NotThere, fix
from streamlint.fix.cpp_code import CppCode
from streamlint.fix.launches import call_with_stream, with_stream

OF_NOW = "at::cuda::getCurrentCUDAStream()"
OF_TORCH = re.compile(r"#\s*include\s*[<\"](?:torch/|ATen/|c10/)")
CURRENT = re.compile(r"#\s*include\s*[<\"](?:ATen/cuda/CUDAContext\.h|c10/cuda/CUDAStream\.h)")


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """The stream as the last launch parameter or argument, at each place that the finding tells of: the one that the function knows,
    else the current one of PyTorch."""
    if not isinstance(code, CppCode):
        return
    places = [span for span in dict.fromkeys((finding.span, *finding.covers)) if span.file == code.file]
    calls = [call_with_stream(code.node_at(span), code) for span in places]
    known = {stream for call in calls for stream in _known(finding, call, code)}
    if len(known) == 1:  # of several streams nobody knows which is meant
        (stream,) = known
        yield fix(f"pass `{stream}`", UNSAFE, *(with_stream(call, stream, code) for call in calls))
    elif not known and OF_TORCH.search(code.text):
        more = [] if CURRENT.search(code.text) else [_include(code)]
        yield fix(f"pass `{OF_NOW}`", UNSAFE, *more, *(with_stream(call, OF_NOW, code) for call in calls))


def _known(finding: Finding, call: Node, code: CppCode) -> list[str]:
    """The streams that the function around a call is given, declares, or names."""
    function = code.function_of(call)
    known, body = code.streams_in(function), code.source(function)
    for step in finding.trail:  # `cudaStreamCreate(&stream_)`
        try:
            made = code.arguments(code.call_at(step.span))
        except NotThere:
            continue
        name = code.source(made[0]).lstrip("&( ") if made else ""
        if name.isidentifier() and re.search(rf"\b{name}\b", body):
            known.append(name)
    return known


def _include(code: CppCode) -> Edit:
    rows = [row for row, line in enumerate(code.lines, 1) if OF_TORCH.match(line)]
    return code.lines_after(rows[-1], "#include <ATen/cuda/CUDAContext.h>")
