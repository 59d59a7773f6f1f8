"""Functions of Python that are not run, as nothing that a check begins with can come of them.

Nobody looks at what a function does that is passed over: so this is told from what stands in it and in all that it calls, and what is
not known counts against it. A name may stand for a parameter, a local, a function at hand, a constant, a builtin, or a module out of view
of which the linter knows nothing; anything else may be a stream, a tensor on the device, or an object that holds one.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from streamlint import program as p
from streamlint.operations import BY_PLACE, ENTERED

if TYPE_CHECKING:
    from streamlint.interpreter.file import File

_BUILTINS = frozenset(dir(builtins))


def is_plain(function: p.Function, file: File) -> bool:
    """Whether a function of Python holds only names of what cannot work on a device, apart from the functions that it calls."""
    if file.is_cuda or file.is_cython or "*" in file.globals:
        return False
    text = file.relevance.text(function)
    if BY_PLACE in text or ENTERED in text or any(_is_text(param.annotation) for param in function.params):
        return False
    named, bound = set[str](), set[str]()
    for node in p.walk(function):
        if isinstance(node, p.Name):
            named.add(node.id)
        elif (binding := BINDING.get(node.__class__)) is not None:
            bound.update(binding(node))
        elif isinstance(node, p.Scope | p.ClassDef):
            return False
    # (a local of a lambda, or of a function inside, is none around it: where the module has a variable of the name, that one is meant)
    return all((name in bound and name not in file.globals) or _is_idle(name, file) for name in named)


def _is_text(annotation: p.Expression | None) -> bool:
    """Whether an annotation holds a text, which may name any class."""
    return annotation is not None and any(isinstance(node, p.Const) and isinstance(node.value, str) for node in p.walk(annotation))


def _names(*targets: p.Expression | None) -> Iterator[str]:
    for target in targets:
        if isinstance(target, p.Name):
            yield target.id
        elif target is not None:
            yield from (inner.id for inner in p.walk(target) if isinstance(inner, p.Name))


# The names that a node gives a value in its function.
BINDING: dict[type, Callable[[Any], Iterable[str]]] = {
    p.Param: lambda node: (node.name,),
    p.Handler: lambda node: (node.name,) if node.name is not None else (),
    p.FunctionDef: lambda node: (node.function.name,),
    p.Assign: lambda node: _names(*node.targets),
    p.Loop: lambda node: _names(node.target),
    p.Clause: lambda node: _names(node.target),
    p.AssignExpr: lambda node: _names(node.target),
    p.With: lambda node: _names(*(target for _, target in node.items)),
}


def _is_idle(name: str, file: File) -> bool:
    """Whether a name from outside of a function stands for a function, a constant, a builtin, or a module of which nothing is known."""
    held = file.globals.get(name)
    if held is None:
        return name in _BUILTINS
    dotted = file.imports.get(name)
    if dotted is not None:
        return all(isinstance(one, p.Import) for one in held) and _is_out_of_view(dotted, file)
    return all(isinstance(one, p.FunctionDef) or (isinstance(one, p.Assign) and isinstance(one.value, p.Const)) for one in held)


def _is_out_of_view(dotted: str, file: File) -> bool:
    modules = [dotted[:end] for end, sign in enumerate(dotted + ".") if sign == "."]
    if not modules[0] or modules[0] in file.models.packages:
        return False
    return all(file.program.python_module(module, file) is None for module in modules)
