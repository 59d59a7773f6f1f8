"""CUDA C++ that stands in Python strings: each string that holds host code becomes a module of its own.

Two kinds of strings do: arguments of ``load_inline``, and longer ones with a host function that launches or copies. A string
of kernels alone (CuPy's RawKernel, PyCUDA's SourceModule) holds nothing that an operation could stand in.

The text that is lowered has the geometry of the Python file: blank, but for the literal's content at its own rows and columns. So places
are right by themselves. Where a literal's text is not its value (an escape such as ``\\n``, several literals side by side), what
stands behind that is reported at the literal's first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamlint import TYPE_CHECKING
from streamlint.frontends import MissingParser, UnreadableSource
from streamlint.program import (
    Assign,
    Attr,
    Binary,
    Call,
    Collection,
    Conditional,
    Const,
    Expression,
    ExprStatement,
    Function,
    Launch,
    Module,
    Name,
    Position,
    Starred,
    functions_of,
    walk,
)
from streamlint.program.definitions import HOLDS_CPP
from streamlint.support.lazy import lazy
from streamlint.support.lines import split_lines
from streamlint.support.records import is_record, names_of, record

if TYPE_CHECKING:
    from streamlint.frontends import cuda
else:
    (cuda,) = lazy("streamlint.frontends", "cuda")

TORCH_HEADER = "torch/extension.h"

_HOST_WORK = re.compile(r"<<<|\bcudaMemcpyAsync\b|\bcudaLaunch")
_FEWEST_BREAKS = 3  # a string of more than three lines
# load_inline(name, cpp_sources, cuda_sources, ...)
_SOURCES = {"cpp_sources", "cuda_sources", 1, 2}
_OF_RECEIVER = {"format", "replace", "strip", "lstrip", "rstrip"}
_OF_ARGUMENT = {"dedent", "join"}

_LITERAL = re.compile(r"([rRuU]?)(\"\"\"|'''|\"|')((?:[^\\]|\\.)*?)\2", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# Escapes that stand for one character and need not be distinguished from a blank and that character: `\\`, `\"`, `\'`.
_PADDED = "\\\"'"
_HARD = frozenset("abfnrtvxuUN01234567")

Bindings = dict[str, list[Expression]]


@record(frozen=True, slots=True)
class _Text:
    """What is lowered for a literal: ``content`` begins at ``row`` and ``column``; from offset ``exact`` on it is not the file's text."""

    content: str
    row: int
    column: int
    exact: int | None = None


def modules_in(module: Module) -> list[Module]:
    """The CUDA modules in a Python module's strings, in order; their places are those of the Python file."""
    if not any(hint in module.text for hint in HOLDS_CPP):
        return []
    nodes = list(walk(module))
    given = {id(const) for const in _given_to_load_inline(nodes, module.imports)}
    unused = {id(node.value) for node in nodes if isinstance(node, ExprStatement)}
    found: list[tuple[Position, Module]] = []
    for node in nodes:
        if not isinstance(node, Const) or not isinstance(node.value, str):
            continue
        if id(node) in given:
            inner = _extension(_lowered(node, node.value, module))
        elif id(node) not in unused and _may_hold(node.value):
            inner = _with_host_work(_lowered(node, node.value, module))
        else:
            continue
        if inner is not None:
            found.append((node.at, inner))
    return [inner for _, inner in sorted(found, key=lambda pair: pair[0])]


# --- which strings ------------------------------------------------------------------------


def _given_to_load_inline(nodes: list[object], imports: dict[str, str]) -> Iterator[Const]:
    bindings = _bindings(nodes)
    for node in nodes:
        if isinstance(node, Call) and imports.get(_last_name(node.function), _last_name(node.function)).endswith("load_inline"):
            for place, arg in enumerate(node.args):
                if (arg.keyword or place) in _SOURCES and not arg.stars:
                    yield from _strings(arg.value, bindings, frozenset())


def _bindings(nodes: list[object]) -> Bindings:
    """What each name is given, in whatever scope: sources hardly share a name with other texts of a file."""
    bindings: Bindings = {}
    for node in nodes:
        if isinstance(node, Assign) and node.value is not None and node.op in (None, "+"):
            for target in node.targets:
                if isinstance(target, Name):
                    bindings.setdefault(target.id, []).append(node.value)
    return bindings


def _last_name(function: Expression) -> str:
    return function.id if isinstance(function, Name) else function.name if isinstance(function, Attr) else ""


def _strings(value: Expression, bindings: Bindings, seen: frozenset[str]) -> Iterator[Const]:
    """The string literals that a source argument is made of."""
    if isinstance(value, Const):
        if isinstance(value.value, str):
            yield value
    elif isinstance(value, Name) and value.id not in seen:
        for bound in bindings.get(value.id, ()):
            yield from _strings(bound, bindings, seen | {value.id})
    else:
        for part in _parts(value):
            yield from _strings(part, bindings, seen)


def _parts(value: Expression) -> tuple[Expression, ...]:
    if isinstance(value, Collection):
        return value.items
    if isinstance(value, Starred):
        return (value.value,)
    if isinstance(value, Conditional):
        return value.then, value.otherwise
    if isinstance(value, Binary):
        return (value.left, value.right) if value.op == "+" else (value.left,)
    if isinstance(value, Call):
        name = _last_name(value.function)
        if name in _OF_RECEIVER and isinstance(value.function, Attr):
            return (value.function.value,)
        if name in _OF_ARGUMENT:
            return tuple(arg.value for arg in value.args[:1])
    return ()


def _may_hold(text: str) -> bool:
    return text.count("\n") >= _FEWEST_BREAKS and _HOST_WORK.search(text) is not None


def _extension(module: Module | None) -> Module | None:
    """The module as ``load_inline`` compiles it: with PyTorch's header."""
    if module is not None and TORCH_HEADER not in module.includes:
        module.includes = (*module.includes, TORCH_HEADER)
    return module


def _with_host_work(module: Module | None) -> Module | None:
    """The module if a host function in it has work for the device."""
    if module is None:
        return None
    return module if any(_works(function) for function, _ in functions_of(module)) else None


def _works(function: Function) -> bool:
    return function.space == "host" and any(
        isinstance(node, Launch) or (isinstance(node, Call) and _HOST_WORK.match(_last_name(node.function))) for node in walk(function)
    )


# --- from a literal to a module ------------------------------------------------------------------------


def _lowered(const: Const, value: str, module: Module) -> Module | None:
    lines = split_lines(module.text)
    text = _text(const.at, value, lines)
    try:
        inner = cuda.lower(module.path, "\n" * (text.row - 1) + " " * (text.column - 1) + text.content.replace("\0", " "))
    except MissingParser as error:
        module.problems.append((const.at, error.message))
        return None
    except UnreadableSource:
        return None
    if text.exact is not None:
        before = text.content[: text.exact].split("\n")
        limit = (text.row + len(before) - 1, len(before[-1]) + (text.column if len(before) == 1 else 1))
        row, column = const.at[:2]
        _move(inner, limit, (row, column, row, len(lines[row - 1]) + 1))
    return inner


def _text(at: Position, value: str, lines: list[str]) -> _Text:
    row, column, end_row, end_column = at
    source = "\n".join(lines[row - 1 : end_row])
    source = source[column - 1 : len(source) - len(lines[end_row - 1]) + end_column - 1]
    literal = _LITERAL.match(source)
    if literal is None:
        return _Text(value, row, column, 0)
    prefix, quote, body = literal.groups()
    start = column + len(prefix) + len(quote)
    if literal.end() != len(source):
        return _Text(value, row, start, 0)
    if prefix in "rR" and prefix:
        return _Text(body, row, start)
    escapes = {escape[1] for escape in _ESCAPE.finditer(body)}
    if escapes & _HARD:
        return _Text(value, row, start, body.index("\\"))
    return _Text(_ESCAPE.sub(_padded, body) if escapes else body, row, start)


def _padded(escape: re.Match[str]) -> str:
    """The character that an escape stands for, in as many columns. C++ joins lines at a backslash as Python does."""
    return f" {escape[1]}" if escape[1] in _PADDED else escape[0]


def _move(module: Module, limit: tuple[int, int], line: Position) -> None:
    """Give what stands at ``limit`` or behind it the place ``line``."""

    def moved(at: Position) -> Position:
        if at[:2] == (0, 0):
            return at
        return line if at[:2] >= limit else (*at[:2], *min(at[2:], limit))

    module.problems = [(moved(at), message) for at, message in module.problems]
    stack: list[object] = [module.body, module.functions, module.classes, module.globals]
    seen: set[int] = set()
    while stack:
        thing = stack.pop()
        if isinstance(thing, dict):
            stack.extend(thing.values())
        elif isinstance(thing, list | tuple):
            stack.extend(thing)
        elif is_record(thing) and id(thing) not in seen:
            seen.add(id(thing))
            for name in names_of(type(thing)):
                content = getattr(thing, name)
                if name in _PLACES:
                    setattr(thing, name, moved(content))
                elif content is not None and not isinstance(content, str):
                    stack.append(content)


_PLACES = ("at", "name_at", "head_at")
