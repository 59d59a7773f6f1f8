"""Names to definitions at hand, without a run: the body that a call means, classes and their methods, and what stands around a node."""

from __future__ import annotations

import functools

from streamlint import program as p
from streamlint.interpreter.guards import lvalue
from streamlint.interpreter.index import File, dotted_name, is_declaration, walk_module
from streamlint.interpreter.notes import remembered

_ROWS = 32  # that are looked up together: a question is asked of the few functions there, never of all in a file


def body_of(call: p.Call, file: File, owner: p.Class | None) -> tuple[p.Function, File, p.Class | None] | None:
    """The body that a call runs: a function of this file or an imported one, or a method of the same class."""
    function = call.function
    if isinstance(function, p.Name):
        own = method_of(owner, file, function.id) if owner is not None and file.is_cuda else None
        return own or _function(function.id, file)
    if not isinstance(function, p.Attr):
        return None
    if owner is not None and isinstance(function.value, p.Name) and function.value.id in ("self", "cls", "this"):
        return method_of(owner, file, function.name)
    if isinstance(function.value, p.Name) and (dotted := dotted_name(file, function.value)):
        target = file.program.python_module(dotted, file)
        if target is not None and target is not file and (found := target.function(function.name)) is not None:
            return found, target, None
    held = class_of_place(function.value, file)
    return method_of(*held, function.name) if held is not None else None


def class_of_place(place: p.Expression, file: File) -> tuple[p.Class, File] | None:
    """The class whose objects, and nothing else, a file assigns to a place."""
    return _objects(file).get(lvalue(place) or "")


@remembered(512)
def _objects(file: File) -> dict[str, tuple[p.Class, File]]:
    """The places to which a file assigns objects of one class at hand, and nothing else."""
    found: dict[str, tuple[p.Class, File]] = {}
    others: set[str] = set()
    for node in walk_module(file.module):
        if isinstance(node, p.Assign) and node.value is not None:
            held = class_at_hand(node.value.function, file) if isinstance(node.value, p.Call) else None
            for place in filter(None, map(lvalue, node.targets)):
                if held is None or found.setdefault(place, held)[0] is not held[0]:
                    others.add(place)
    return {place: held for place, held in found.items() if place not in others}


def _function(name: str, file: File) -> tuple[p.Function, File, p.Class | None] | None:
    local = functions(file).get(name)
    if local is not None:
        return local, file, enclosing(file, local)[1]
    head, _, last = file.imports.get(name, "").rpartition(".")
    target = file.program.python_module(head or ".", file) if last else None
    if target is None or target is file or (found := target.function(last)) is None:
        return None
    return found, target, None


def method_of(owner: p.Class, file: File, name: str, depth: int = 3) -> tuple[p.Function, File, p.Class | None] | None:
    """The body of a method, of the class itself or of its bases at hand."""
    if name in owner.methods:
        function = owner.methods[name][0]
        defined = file.program.definition(function, file) if file.is_cuda and is_declaration(function) else None
        return (*(defined or (function, file)), owner)
    for base in owner.bases:
        held = class_at_hand(base, file)
        if depth and held is not None and held[0] is not owner and (found := method_of(*held, name, depth - 1)) is not None:
            return found
    return None


def class_at_hand(base: p.Expression, file: File) -> tuple[p.Class, File] | None:
    """The definition of a base class, if it is in this file or in one that it is imported from."""
    if isinstance(base, p.Name) and base.id in file.classes:
        return file.classes[base.id], file
    head, _, last = dotted_name(file, base).rpartition(".")
    target = file.program.python_module(head, file) if head else None
    if target is None or last not in target.classes:
        return None
    return target.classes[last], target


def is_module(owner: p.Class, file: File, depth: int = 3) -> bool:
    """Whether a class derives from ``torch.nn.Module``, in view or through a class of ``torch.nn``."""
    for base in owner.bases:
        if dotted_name(file, base).startswith("torch.nn."):
            return True
        held = class_at_hand(base, file)
        if depth and held is not None and held[0] is not owner and is_module(held[0], held[1], depth - 1):
            return True
    return False


@functools.lru_cache(maxsize=512)
def functions(file: File) -> dict[str, p.Function]:
    """The functions of a file by name, inner ones too; methods are not among them."""
    found: dict[str, p.Function] = {}
    for node in walk_module(file.module):
        if isinstance(node, p.FunctionDef):
            found.setdefault(node.function.name, node.function)
    return found


@functools.lru_cache(maxsize=512)
def _by_rows(file: File) -> tuple[dict[int, list[tuple[p.Function, p.Class]]], dict[int, list[p.Function]]]:
    """The methods of a file's classes, and its functions by name, in order, by each stretch of rows that they stand on."""
    methods: dict[int, list[tuple[p.Function, p.Class]]] = {}
    named: dict[int, list[p.Function]] = {}
    for function, definition in p.functions_of(file.module):
        if definition is not None:
            for stretch in _stretches(function):
                methods.setdefault(stretch, []).append((function, definition))
    for function in functions(file).values():
        for stretch in _stretches(function):
            named.setdefault(stretch, []).append(function)
    return methods, named


def _stretches(function: p.Function) -> range:
    first, _, last, _ = function.at
    return range(first // _ROWS, last // _ROWS + 1)


@functools.lru_cache(maxsize=8192)
def enclosing(file: File, node: p.Node) -> tuple[p.Function | None, p.Class | None]:
    """The innermost function that a node stands in (itself left out), and the class whose method is around it."""
    holder: p.Function | None = None
    owner: p.Class | None = None
    at = node.at
    methods, named = _by_rows(file)
    for function, definition in methods.get(at[0] // _ROWS, ()):
        if contains(function.at, at):
            holder, owner = function, definition
    for function in named.get(at[0] // _ROWS, ()):
        if function is not node and contains(function.at, at) and (holder is None or contains(holder.at, function.at)):
            holder = function
    if owner is None and holder is not None and holder.class_name and file.is_cuda:
        owner = file.class_named(holder.class_name)  # a body that stands behind its class
    return holder, owner


def contains(outer: p.Position, inner: p.Position) -> bool:
    """Whether one place holds another."""
    return outer != p.NOWHERE and (outer[0], outer[1]) <= (inner[0], inner[1]) and (inner[2], inner[3]) <= (outer[2], outer[3])


def is_optional(annotation: p.Expression) -> bool:
    """Whether an annotation leaves open what a value is: ``Cache | None``, ``Optional[Cache]``, ``Union[Cache, tuple]``."""
    if isinstance(annotation, p.Index):
        head = annotation.value
        return (head.id if isinstance(head, p.Name) else head.name if isinstance(head, p.Attr) else "") in ("Optional", "Union")
    return isinstance(annotation, p.Binary) and annotation.op == "|"
