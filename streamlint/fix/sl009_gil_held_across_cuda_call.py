"""SL009: a call guard that lets the GIL go."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from streamlint.findings import Finding, Fix
from streamlint.fix.code import UNSAFE, Code, NotThere, fix
from streamlint.fix.cpp_code import CppCode

# What needs the GIL: a body or a parameter that speaks of Python's objects.
PYTHONIC = re.compile(r"\bPy[A-Z_]\w+|\b(?:py|nb|pybind11|nanobind)::(?!arg|call_guard|gil_scoped_release)\w+|\b\w+_a\b|\bgil_scoped")
BINDS = re.compile(r"\bnamespace\s+(\w+)\s*=\s*(pybind11|nanobind)\s*;")


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """``call_guard<gil_scoped_release>`` on the binding of a function whose text is at hand and touches no object of Python's."""
    if not isinstance(code, CppCode):
        return
    bound = code.call_at(finding.span)
    if re.search(r"\bdef_(?:property|readwrite|prop)", code.callee(bound)[-40:]) or not _is_free_of_python(bound, code):
        return
    space = _space(code)
    yield fix("release the GIL around the call", UNSAFE, code.appended(bound, f"{space}::call_guard<{space}::gil_scoped_release>()"))


def _space(code: CppCode) -> str:
    if alias := BINDS.search(code.text):
        return alias[1]
    for name in ("pybind11", "nanobind"):
        if f"{name}::" in code.text or f"#include <{name}/" in code.text:
            return name
    raise NotThere


def _is_free_of_python(bound: Node, code: CppCode) -> bool:
    given = code.arguments(bound)
    texts = [code.source(node) for node in given if node.type == "lambda_expression"]
    for node in given:
        name = re.sub(r"<.*>", "", code.source(node)).lstrip("&").rpartition("::")[2].strip()
        if node.type in ("pointer_expression", "identifier", "qualified_identifier") and name:
            texts += [code.source(found) for found in _definitions(name, code)] or ["PyObject"]  # out of view
    return bool(texts) and not any(PYTHONIC.search(text) for text in texts)


def _definitions(name: str, code: CppCode) -> list[Node]:
    found = []
    for node in code.within(code.root, "function_definition"):
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and re.search(rf"(?:^|[^\w]){re.escape(name)}\s*\(", code.source(declarator)):
            found.append(node)
    return found
