"""Pinned host memory in C++, for malloc and free."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint.findings import Edit, Finding, Fix
from streamlint.fix.base import UNSAFE, NotThere, fix
from streamlint.fix.cpp_code import CppCode

if TYPE_CHECKING:
    from tree_sitter import Node

_MADE = re.compile(
    r"(?P<type>(?:[\w:]+\s+)*[\w:]+\s*\*\s*)?(?P<name>\w+)\s*=\s*"
    r"(?:\(\s*[\w:\s]+\*\s*\)\s*|(?:static|reinterpret)_cast\s*<[^<>]+>\s*\(\s*)?(?:std::)?malloc\s*\((?P<size>.*)\)\s*;",
    re.S,
)


def pinned_pair(finding: Finding, code: CppCode) -> Iterator[Fix]:
    """``cudaMallocHost`` and ``cudaFreeHost`` for a ``malloc`` whose pointer is freed by its own name and goes nowhere else.

    A vector, ``new`` and an array on the stack have no such pair: other types, and constructors, would have to change.
    """
    for step in finding.trail:
        if step.span.file != code.file:
            continue
        try:
            yield fix("allocate and free pinned memory", UNSAFE, *_edits(code.call_at(step.span, "malloc", "std::malloc"), code))
        except NotThere:
            continue


def _edits(made: Node, code: CppCode) -> list[Edit]:
    statement = code.statement_of(made)
    found = _MADE.fullmatch(code.source(statement))
    if found is None or code.shares_its_line(statement):
        raise NotThere
    name, size = found["name"], found["size"]
    if "_cast" in code.source(statement).split("malloc")[0]:
        size = size.rstrip()[:-1] if size.count(")") > size.count("(") else size
    scope = code.function_of(made) if found["type"] else _class_around(made, name, code)
    calls = [call for call in code.within(scope, "call_expression") if re.search(rf"\b{name}\b", code.source(call))]
    frees = [call for call in calls if code.callee(call) in ("free", "std::free")]
    whole = code.source(scope)
    others = re.search(rf"\breturn\s+{name}\s*;|\brealloc\s*\(\s*{name}\b|[\w\])]\s*=\s*{name}\s*;", whole)
    plain = all([code.source(node) for node in code.arguments(call)] == [name] for call in frees)
    if not frees or not plain or others or len(re.findall(rf"\b{name}\s*=(?!=)", whole)) != 1:
        raise NotThere
    declared = f"{found['type'].rstrip()} {name};{code.newline}{code.indent(statement.start_point[0] + 1)}" if found["type"] else ""
    alloc = code.replaced(statement, f"{declared}cudaMallocHost((void**)&{name}, {size});")
    return [alloc, *(code.replaced(call.children[0], "cudaFreeHost") for call in frees)]


def _class_around(made: Node, name: str, code: CppCode) -> Node:
    """Where a member is made: the class, with what frees it."""
    scope = next((up for up in code.upwards(made) if up.type in ("class_specifier", "struct_specifier")), None)
    if scope is None or not name.endswith("_"):
        raise NotThere
    return scope
