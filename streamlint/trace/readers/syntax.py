"""What Python calls by itself, by the syntax that makes it: special methods of operators, tests, loops and functions of the language."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Mapping

TRUTH = ("__bool__", "__len__")
TEXT = ("__format__", "__str__", "__repr__")
STEP = ("__next__", "__iter__", "<genexpr>")
BUILTIN = frozenset(vars(builtins))
_ITERATING = frozenset("any all sum list tuple sorted min max set dict zip map filter enumerate reversed frozenset next iter".split())
_ANSWERING = frozenset("all any bool callable hasattr isinstance issubclass len".split())
_COMPARING = frozenset("min max sorted any all".split())
_PASSING_ON = _ITERATING | {name for name in vars(itertools) if not name.startswith("_")}
OPERATORS: dict[type[ast.AST], str] = {
    getattr(ast, pair.partition(":")[0]): pair.partition(":")[2]
    for pair in (
        "Add:add Sub:sub Mult:mul Div:truediv FloorDiv:floordiv Mod:mod Pow:pow MatMult:matmul BitAnd:and BitOr:or BitXor:xor "
        "LShift:lshift RShift:rshift Eq:eq NotEq:ne Lt:lt LtE:le Gt:gt GtE:ge In:contains NotIn:contains USub:neg UAdd:pos Invert:invert"
    ).split()
}


def is_plain(test: ast.AST) -> bool:
    """Whether a test's value is Python's own, whose truth nobody has to compute."""
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[-1], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Name) and test.func.id in _ANSWERING
    return isinstance(test, ast.Constant)


def names_called(function: str) -> tuple[str, ...]:
    """What a call of a function may be seen as: `float(x)` as ``__float__``, `print(x)` as ``__repr__``."""
    if function not in BUILTIN:
        return (function,)
    found = [function, f"__{function}__"]
    if function in ("print", "str", "format", "repr"):
        found += TEXT
    if function in _ITERATING:
        found += STEP
    if function in _COMPARING:
        found += [*TRUTH, "__lt__", "__gt__"]
    if function in ("range", "int", "float"):
        found.append("__index__")
    return tuple(dict.fromkeys(found))


def makers(node: ast.AST, made_by: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The functions that may have made what is gone through: each step of a generator is an event of its function.

    ``made_by`` says it of variables.
    """
    if isinstance(node, ast.Name):
        return made_by.get(node.id, ())
    if not isinstance(node, ast.Call):
        return ()
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in _PASSING_ON:
        return tuple(dict.fromkeys(one for argument in node.args for one in makers(argument, made_by)))
    return (name,) if name and name not in BUILTIN else ()
