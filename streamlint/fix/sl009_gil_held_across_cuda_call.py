"""SL009: the GIL let go: a call guard, the macros of the C API, or `with nogil` of Cython."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint.findings import Finding, Fix
from streamlint.fix.base import UNSAFE, NotThere, fix
from streamlint.fix.code import Code
from streamlint.fix.cpp_code import CppCode
from streamlint.fix.cython_code import CythonCode

if TYPE_CHECKING:
    from tree_sitter import Node

# What needs the GIL: a body or a parameter that speaks of Python's objects.
PYTHONIC = re.compile(r"\bPy[A-Z_]\w+|\b(?:py|nb|pybind11|nanobind)::(?!arg|call_guard|gil_scoped_release)\w+|\b\w+_a\b|\bgil_scoped")
OF_C_API = re.compile(r"#\s*include\s*[<\"]Python\.h")
BEGIN, END = "Py_BEGIN_ALLOW_THREADS", "Py_END_ALLOW_THREADS"
BINDS = re.compile(r"\bnamespace\s+(\w+)\s*=\s*(pybind11|nanobind)\s*;")


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """``call_guard<gil_scoped_release>`` on the binding of a function whose text is known and touches no object of Python's."""
    if not isinstance(code, CppCode):
        return
    if OF_C_API.search(code.text) and not code.text.count("pybind11") and "nanobind" not in code.text:
        yield from _of_c_api(finding, code)
        return
    bound = code.call_at(finding.span)
    if re.search(r"\bdef_(?:property|readwrite|prop)", code.callee(bound)[-40:]) or not _is_free_of_python(bound, code):
        return
    space = _space(code)
    yield fix("release the GIL around the call", UNSAFE, code.appended(bound, f"{space}::call_guard<{space}::gil_scoped_release>()"))


def cython_fixes(finding: Finding, code: CythonCode) -> Iterator[Fix]:
    """``with nogil:`` around a statement that names nothing but C."""
    yield fix("release the GIL around the call", UNSAFE, code.without_gil(finding.span.row))


def _of_c_api(finding: Finding, code: CppCode) -> Iterator[Fix]:
    """The macros around one statement that touches no object of Python's; a variable that it makes is declared before."""
    statement = code.statement_at(finding.span)
    text = code.source(statement)
    called = {code.callee(call) for call in code.within(statement, "call_expression")}
    if PYTHONIC.search(text) or code.shares_its_line(statement) or any(_may_touch_python(name, code) for name in called):
        return
    lead = [BEGIN]
    if statement.type == "declaration":
        if not (made := re.fullmatch(r"((?:[\w:]+\s+)+\**)(\w+)\s*=\s*(.*);", text, re.S)) or re.search(
            r"\b(?:auto|const|static)\b", made[1]
        ):
            return
        lead, text = [f"{made[1]}{made[2]};", BEGIN], f"{made[2]} = {made[3]};"
        yield fix(
            "release the GIL around the call",
            UNSAFE,
            code.replaced(statement, f"{code.newline}{code.indent(statement.start_point[0] + 1)}".join([*lead, text, END])),
        )
    elif statement.type == "expression_statement":
        last = statement.end_point[0] + 1
        after = code.lines_after(last, END, like=statement.start_point[0] + 1)
        yield fix("release the GIL around the call", UNSAFE, code.before(statement, *lead), after)


def _may_touch_python(name: str, code: CppCode) -> bool:
    """Whether a function may need the GIL: not CUDA's own, unless its text is known and says nothing of Python."""
    if re.match(r"(?:cuda|cublas|nccl|cusolver|cufft|cudnn)[A-Z]|(?:static|reinterpret)_cast\b|cu[A-Z]", name):
        return False
    found = [code.source(node) for node in _definitions(name.rpartition("::")[2], code)]
    return not found or any(PYTHONIC.search(text) for text in found)


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
            texts += [code.source(found) for found in _definitions(name, code)] or ["PyObject"]  # unknown
    return bool(texts) and not any(PYTHONIC.search(text) for text in texts)


def _definitions(name: str, code: CppCode) -> list[Node]:
    found = []
    for node in code.within(code.root, "function_definition"):
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and re.search(rf"(?:^|[^\w]){re.escape(name)}\s*\(", code.source(declarator)):
            found.append(node)
    return found
