"""Declarations of pointers to functions whose parameters are names alone, which the parser takes for calls.

``void (*act)(cudaStream_t) = finish;`` reads as an assignment to what ``void(*act)`` gives for ``cudaStream_t``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

_TYPES = ("primitive_type", "identifier", "qualified_identifier", "template_function")
_PARAMETERS = ("primitive_type", "identifier", "qualified_identifier", "template_function", "comment")


class FunctionPointer(NamedTuple):
    """The parts of a declaration: what the function returns, the variable, and its first value."""

    returns: Syntax
    name: Syntax
    value: Syntax | None


def function_pointer(node: Syntax) -> FunctionPointer | None:
    """The pointer to a function that an expression declares; None where it is an expression.

    Without a first value only a type of the language tells the two apart.
    """
    value = node.child_by_field_name("right") if node.type == "assignment_expression" else None
    outer = node if value is None else node.child_by_field_name("left")
    inner = _function_of(outer)
    returns = _function_of(inner)
    if outer is None or inner is None or returns is None or returns.type not in _TYPES:
        return None
    if value is None and returns.type != "primitive_type":
        return None
    given = inner.child_by_field_name("arguments")
    parameters = outer.child_by_field_name("arguments")
    if given is None or parameters is None or given.named_child_count != 1:
        return None
    pointer = given.named_children[0]
    name = pointer.child_by_field_name("argument") if pointer.type == "pointer_expression" else None
    if name is None or name.type != "identifier" or pointer.children[0].type != "*":
        return None
    if any(child.type not in _PARAMETERS for child in parameters.named_children):
        return None
    return FunctionPointer(returns, name, value)


def _function_of(call: Syntax | None) -> Syntax | None:
    return call.child_by_field_name("function") if call is not None and call.type == "call_expression" else None
