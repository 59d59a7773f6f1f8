"""SL003: the stream-ordered pair, or the allocation before the loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint.findings import Finding, Fix
from streamlint.fix.base import UNSAFE, fix
from streamlint.fix.code import Code
from streamlint.fix.cpp_code import LOOPS, CppCode
from streamlint.fix.python_code import PythonCode
from streamlint.fix.python_tree import FUNCTIONS, words_in

if TYPE_CHECKING:
    from tree_sitter import Node

PAIRS = {"cudaMalloc": "cudaFree", "cudaMallocHost": "cudaFreeHost", "cudaHostAlloc": "cudaFreeHost", "cudaMallocManaged": "cudaFree"}
# What makes memory whose content nobody may rely on.
UNFILLED = frozenset("empty empty_like empty_pinned empty_like_pinned device_array device_array_like pinned_array mapped_array".split())
KEEPS = frozenset("append appendleft extend insert put put_nowait add push send submit setdefault".split())
HOLDERS = (ast.Return, ast.Yield, ast.YieldFrom, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Lambda, *FUNCTIONS)
LEAVES = ("return_statement", "goto_statement", "throw_statement", "break_statement", "continue_statement")


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """C++: the stream-ordered pair on a stream of the function, else both calls out of the loop; Python: out of the loop."""
    if isinstance(code, PythonCode):
        yield from _hoisted_python(finding, code)
        return
    alloc = code.call_at(finding.span, *PAIRS)
    frees = [code.call_at(step.span, PAIRS[code.callee(alloc)]) for step in finding.trail if step.message.startswith("freed here")]
    if len(frees) != 1 or code.function_of(frees[0]) != code.function_of(alloc):
        return
    if code.callee(alloc) == "cudaMalloc":
        yield from _stream_ordered(alloc, frees[0], code)
    yield from _hoisted(alloc, frees[0], code)


def _stream_ordered(alloc: Node, free: Node, code: CppCode) -> Iterator[Fix]:
    for stream in [*code.streams_in(code.function_of(alloc)), "0"]:
        edits = [
            code.replaced(alloc.children[0], "cudaMallocAsync"),
            code.appended(alloc, stream),
            code.replaced(free.children[0], "cudaFreeAsync"),
            code.appended(free, stream),
        ]
        yield fix(f"allocate and free in the order of stream `{stream}`", UNSAFE, *edits)


def _hoisted(alloc: Node, free: Node, code: CppCode) -> Iterator[Fix]:
    """The allocation's line before the loop and the free's line after it, where nothing in the loop changes what they name."""
    first, last = code.statement_of(alloc), code.statement_of(free)
    body = first.parent
    loop = body.parent if body is not None else None
    if body is None or loop is None or loop.type not in LOOPS or last.parent != body or any(code.within(body, *LEAVES)):
        return
    pointer = code.source(code.arguments(free)[0]).split(")")[-1].strip()
    named = set(re.findall(r"[A-Za-z_]\w*", code.source(first))) - {pointer}
    if not pointer.isidentifier() or any(_changes(code.source(loop).replace(code.source(first), ""), name) for name in named):
        return
    moved = [first]
    declared = [node for node in code.within(body, "declaration") if re.search(rf"\*\s*{pointer}\b", code.source(node))]
    if declared:
        if not re.fullmatch(rf"[\w:<> ]+\*\s*{pointer}\s*(?:=\s*(?:nullptr|NULL|0))?;", code.source(declared[0])):
            return
        moved.insert(0, declared[0])
    if any(code.shares_its_line(node) for node in (*moved, last, loop)):
        return
    edits = [code.line_deleted(node) for node in (*moved, last)]
    edits.append(code.before(loop, *(line for node in moved for line in code.own_lines(node))))
    edits.append(code.lines_after(loop.end_point[0] + 1, *code.own_lines(last), like=loop.start_point[0] + 1))
    yield fix("allocate once, before the loop, and free after it", UNSAFE, *edits)


def _changes(text: str, name: str) -> bool:
    """Whether a text may give a name a value, or declares it."""
    assigned = rf"\b{name}\s*(?:=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--|\[[^\]]*\]\s*=(?!=))"
    return bool(re.search(rf"{assigned}|(?:\+\+|--|&)\s*{name}\b|\b[A-Za-z_][\w:<>]*[\s*&]+{name}\s*[=;,({{:]", text))


def _hoisted_python(finding: Finding, code: PythonCode) -> Iterator[Fix]:
    call = code.call_at(finding.span)
    statement = code.statement_at(finding.span)
    if code.source(call.func).rpartition(".")[2] not in UNFILLED:
        return
    loop, block = code.loop_of(statement), code.block_of(statement)
    if loop is None or block is not loop.body or hasattr(statement, "body") or len(code.on_line(statement)) != 1:
        return
    target = code.target_of(call)
    bound = code.bound_in(loop) - {target}
    if words_in(call) & bound or code.times_bound(target, loop) != 1 or _escapes(target, loop, code):
        return
    yield fix("allocate once, before the loop", UNSAFE, *code.moved_before(statement, loop))


def _escapes(name: str, loop: ast.AST, code: PythonCode) -> bool:
    """Whether a round may hand its buffer on: then the next round needs another one."""
    indices = {id(node.slice) for node in ast.walk(loop) if isinstance(node, ast.Subscript)}
    for node in ast.walk(loop):
        if isinstance(node, HOLDERS) and id(node) not in indices:
            holder: ast.AST = node
        elif isinstance(node, ast.Call) and code.source(node.func).rpartition(".")[2] in KEEPS | {"free", "close", "release"}:
            holder = node
        elif isinstance(node, ast.Assign) and code.source(node.value) == name:
            if any(not _is_part(target) for target in node.targets):
                return True
            continue
        else:
            continue
        if name in words_in(holder):
            return True
    return False


def _is_part(target: ast.expr) -> bool:
    """Whether a target is a part of an array, into which the content is copied: ``x[...]``, ``x[1:]``."""
    if not isinstance(target, ast.Subscript):
        return False
    indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return any(isinstance(i, ast.Slice) or (isinstance(i, ast.Constant) and i.value is Ellipsis) for i in indices)
