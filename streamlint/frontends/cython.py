"""The Cython front end: translated to Python line by line, lowered as Python, and given back what Python cannot say."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import program as p
from streamlint.frontends import UnreadableSource
from streamlint.frontends.cython_lines import without_line
from streamlint.frontends.cython_text import Declared, Header, Translation, translate
from streamlint.frontends.python import lower as lower_python
from streamlint.frontends.python import parse
from streamlint.support.lines import line_starts, place_at
from streamlint.support.records import names_of

_MOST_REPAIRS = 40
CFUNC = "cfunc"  # what Cython itself calls the decorator of a function that Python does not see


def lower(path: str, text: str) -> p.Module:
    """Lower one ``.pyx``, ``.pxd`` or ``.pxi``. A line that cannot be read costs the statement."""
    if "\0" in text:
        raise UnreadableSource(1, 1, "source holds a null byte; is this a binary file?")
    translation = translate(text)
    python, problems = _repaired(translation.text)
    try:
        module = lower_python(path, python)
    except UnreadableSource as error:
        raise UnreadableSource(error.row, error.column, f"this Cython could not be read: {error.message}") from None
    module.text = text
    module.includes = tuple(translation.includes)
    module.problems += problems
    _restore(module, translation, text)
    return module


def _repaired(text: str) -> tuple[str, list[tuple[p.Position, str]]]:
    """The text with the lines that Python refuses taken out, one after the other."""
    problems: list[tuple[p.Position, str]] = []
    for _ in range(_MOST_REPAIRS):
        row = _refused(text)
        if row is None:
            break
        without = without_line(text, row)
        if without == text:
            break
        problems.append(((row, 1, row, 2), "this could not be read in full"))
        text = without
    return text, problems


def _refused(text: str) -> int | None:
    try:
        parse(text)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError):
        return None
    return None


# --- what Python cannot say ------------------------------------------------------------


def _restore(module: p.Module, made: Translation, text: str) -> None:
    starts = line_starts(text)
    addresses = {place_at(starts, offset) for offset in made.addresses}
    for definition in _classes(module):
        _give_members(definition, made.members.get(definition.name, {}))
    for function, _ in _functions(module):
        header = made.headers.get(function.at[0]) or next(
            (made.headers[row] for row in range(function.at[0], function.at[0] + 12) if row in made.headers), None
        )
        if header is not None and header.name == function.name:
            _give_types(function, header)
    for statement in module.body:
        _rewrite(statement, addresses)
    for definition in _classes(module):
        for overloads in definition.methods.values():
            for function in overloads:
                _rewrite(function, addresses)


def _classes(module: p.Module) -> list[p.Class]:
    return list(dict.fromkeys(module.classes.values()))


def _functions(module: p.Module) -> Iterator[tuple[p.Function, p.Class | None]]:
    yield from p.functions_of(module)


def _give_members(definition: p.Class, members: dict[str, Declared]) -> None:
    """C members are fields with a type; ``__cinit__`` runs before anything else."""
    for name, held in members.items():
        definition.fields.append(p.Field(name, type=_type(held), at=definition.at))
    if "__cinit__" in definition.methods and "__init__" not in definition.methods:
        definition.methods["__init__"] = definition.methods["__cinit__"]


def _type(held: Declared) -> p.Type:
    return p.Type(held.type, pointers=held.pointers)


def _give_types(function: p.Function, header: Header) -> None:
    if header.cdef:
        function.decorators = (*function.decorators, p.Name(CFUNC, at=function.at))
    if header.takes_gil:
        function.body = [p.With(((p.Name("gil", at=function.at), None),), function.body, at=function.at)]
    for param in function.params:
        held = header.types.get(param.name)
        if held is not None and param.annotation is None:
            parts = held.type.split(".")
            annotation: p.Expression = p.Name(parts[0], at=function.at)
            for part in parts[1:]:
                annotation = p.Attr(annotation, part, at=function.at)
            param.annotation = annotation


def _rewrite(root: object, addresses: set[tuple[int, int]]) -> None:
    """``~x`` that was ``&x``, NULL, and loops that run without the GIL."""
    for node in list(p.walk(root)):
        for name in names_of(type(node)):
            value = getattr(node, name)
            if isinstance(value, p.Node):
                changed: object = _changed(value, addresses)
            elif isinstance(value, list | tuple):
                changed = type(value)(_changed(v, addresses) if isinstance(v, p.Node) else v for v in value)
            else:
                continue
            setattr(node, name, changed)


def _changed(node: p.Node, addresses: set[tuple[int, int]]) -> p.Node:
    if isinstance(node, p.Unary) and node.op == "~" and node.at[:2] in addresses:
        return p.AddressOf(node.operand, at=node.at)
    if isinstance(node, p.Name) and node.id == "NULL":
        return p.Const(None, at=node.at)
    if isinstance(node, p.Loop) and _runs_without_gil(node.iterable):
        return p.With(((p.Name("nogil", at=node.at), None),), [node], at=node.at)
    return node


def _runs_without_gil(iterable: p.Expression | None) -> bool:
    """``prange(n, nogil=True)``."""
    if not isinstance(iterable, p.Call):
        return False
    return any(a.keyword == "nogil" and isinstance(a.value, p.Const) and a.value.value is True for a in iterable.args)
