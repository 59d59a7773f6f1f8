"""The stream of a launch or a call in C++."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlint.findings import Edit
from streamlint.fix.base import NotThere
from streamlint.fix.cpp_code import CppCode

if TYPE_CHECKING:
    from tree_sitter import Node

# The number of arguments with the stream, which is the last.
STREAM_LAST = {
    "cudaMemcpyAsync": 5, "cudaMemsetAsync": 4, "cudaMemcpy2DAsync": 8, "cudaMemcpy3DAsync": 2, "cudaMemcpyPeerAsync": 6,
    "cudaMemset2DAsync": 6, "cudaMallocAsync": 3, "cudaFreeAsync": 2, "cudaMemPrefetchAsync": 4, "cudaEventRecord": 2,
}  # fmt: skip
POLICIES = frozenset({"thrust::device", "thrust::cuda::par"})
NULLS = frozenset({"0", "nullptr", "NULL", "cudaStreamLegacy", "cudaStreamDefault", "cudaStream_t()", "cudaStream_t{}", "(cudaStream_t)0"})


def call_with_stream(node: Node, code: CppCode) -> Node:
    """The smallest launch, or call that takes a stream, around a node.

    Raises NotThere.
    """
    for up in code.upwards(node):
        if up.type == "call_expression" and (launch(up) is not None or code.callee(up) in STREAM_LAST or policy(up, code) is not None):
            return up
    raise NotThere


def launch(call: Node) -> Node | None:
    """The part between the angle brackets."""
    return next((child for child in call.children if child.type == "kernel_call_syntax"), None)


def policy(call: Node, code: CppCode) -> Node | None:
    """The execution policy of one of Thrust's algorithms, if it names no stream."""
    given = code.arguments(call)
    named = code.callee(call).startswith("thrust::") and given and code.source(given[0]) in POLICIES
    return given[0] if named else None


def stream_of(call: Node, code: CppCode) -> str:
    """The stream that a call names; ``0`` where it names none.

    Raises NotThere for a call that takes no stream.
    """
    part = launch(call)
    if part is not None:
        given = [child for child in part.named_children if child.type != "comment"]
        return code.source(given[3]) if len(given) == 4 else "0"
    given, wanted = code.arguments(call), STREAM_LAST.get(code.callee(call))
    if wanted is None:
        raise NotThere
    return code.source(given[-1]) if len(given) == wanted else "0"


def with_stream(call: Node, stream: str, code: CppCode) -> Edit:
    """The call on another stream.

    Raises NotThere where it has a stream already.
    """
    part = launch(call)
    if part is not None:
        given = [child for child in part.named_children if child.type != "comment"]
        if len(given) == 4:
            return code.replaced(given[3], stream)
        return code.after_node(given[-1], ", " + "0, " * (3 - len(given)) + stream)
    if (named := policy(call, code)) is not None:
        return code.replaced(named, f"thrust::cuda::par.on({stream})")
    given, wanted = code.arguments(call), STREAM_LAST[code.callee(call)]
    if len(given) == wanted and "".join(code.source(given[-1]).split()) in NULLS:
        return code.replaced(given[-1], stream)
    if len(given) == wanted - 1:
        return code.appended(call, stream)
    raise NotThere
