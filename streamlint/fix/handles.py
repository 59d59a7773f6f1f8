"""Handles of CUDA's libraries in C++, which are given a stream once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlint.findings import Finding
from streamlint.fix.base import NotThere
from streamlint.fix.cpp_code import CppCode

if TYPE_CHECKING:
    from tree_sitter import Node

# How a library's calls begin, and what gives its handle a stream. The longer name first.
SETTERS = {
    "cusolverDn": "cusolverDnSetStream", "cusolverSp": "cusolverSpSetStream", "cusparse": "cusparseSetStream", "cublas": "cublasSetStream",
    "cudnn": "cudnnSetStream", "cufft": "cufftSetStream", "curand": "curandSetStream",
}  # fmt: skip
WITHOUT = ("cublasLt", "cublasXt")  # these are given the stream otherwise


def library_call(node: Node, code: CppCode) -> tuple[Node, str, str]:
    """The smallest call of a library around a node: the call, the handle that it works with, and what sets the handle's stream.

    Raises NotThere.
    """
    for up in code.upwards(node):
        if up.type != "call_expression":
            continue
        name, given = code.callee(up), code.arguments(up)
        setter = next((setter for prefix, setter in SETTERS.items() if name.startswith(prefix)), "")
        if setter and given and not name.startswith(WITHOUT):
            handle = code.source(given[0])
            if handle.replace(".", "").replace("->", "").replace("_", "").isalnum():
                return up, handle, setter
    raise NotThere


def is_of_library(finding: Finding) -> bool:
    """Whether a finding's work is a library's, on a handle."""
    return finding.facts.get("api") == "cuda-libraries"
