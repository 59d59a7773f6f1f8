"""Declarations of pointers to functions whose parameters are names alone, which the parser takes for calls.

``void (*act)(cudaStream_t) = finish;`` reads as an assignment to what ``void(*act)`` gives for ``cudaStream_t``. It is one where a name
that would be a type, or the variable itself, is declared as a variable or a function before: ``table(*row)(i) = value;``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

_TYPES = ("primitive_type", "identifier", "qualified_identifier", "template_function")
_PARAMETERS = (*_TYPES, "comment")
_DECLARING = ("declaration", "parameter_declaration", "optional_parameter_declaration", "field_declaration", "function_definition")
_FUNCTIONS = ("function_definition", "lambda_expression")


class FunctionPointer(NamedTuple):
    """The parts of a declaration: what the function returns, the variable, and its first value."""

    returns: Syntax
    name: Syntax
    value: Syntax | None


def function_pointer(node: Syntax) -> FunctionPointer | None:
    """The pointer to a function that an expression declares; None where it is an expression.

    A type of the language before it distinguishes the two. So do a first value and names of which none is declared as anything but a type.
    """
    value = node.child_by_field_name("right") if node.type == "assignment_expression" else None
    outer = node if value is None else node.child_by_field_name("left")
    inner = _function_of(outer)
    returns = _function_of(inner)
    if outer is None or inner is None or returns is None or returns.type not in _TYPES:
        return None
    name = _dereferenced(inner.child_by_field_name("arguments"))
    parameters = outer.child_by_field_name("arguments")
    if name is None or parameters is None:
        return None
    is_certain = returns.type == "primitive_type" or name.type == "type_identifier"  # the latter: a pointer to a member
    if not is_certain and (value is None or not _are_types(node, name, [returns, *parameters.named_children])):
        return None
    return FunctionPointer(returns, name, value)


def _dereferenced(arguments: Syntax | None) -> Syntax | None:
    """The variable of ``(*variable)``, or of ``(Class::*variable)``."""
    if arguments is None or arguments.named_child_count != 1:
        return None
    pointer = arguments.named_children[0]
    if (member := pointer_to_member(pointer)) is not None:
        return member
    name = pointer.child_by_field_name("argument") if pointer.type == "pointer_expression" else None
    return name if name is not None and name.type == "identifier" and pointer.children[0].type == "*" else None


def pointer_to_member(node: Syntax | None) -> Syntax | None:
    """The variable of ``Class::*variable``; None of other names."""
    found = node
    while found is not None and found.type == "qualified_identifier":
        found = found.child_by_field_name("name")
    is_pointer = found is not None and found is not node and found.type == "pointer_type_declarator"
    return found.named_children[-1] if found is not None and is_pointer and found.named_children else None


def called_member(function: Syntax) -> tuple[Syntax, Syntax] | None:
    """The object and the pointer of ``(object.*pointer)`` or ``(address->*pointer)``, which is called; None of anything else."""
    inner = function.named_children if function.type == "parenthesized_expression" else []
    if len(inner) == 1 and inner[0].type == "field_expression":
        operator, held = inner[0].child_by_field_name("operator"), inner[0].child_by_field_name("argument")
        field = inner[0].child_by_field_name("field")
        is_pointer = operator is not None and operator.type == ".*"
        return (held, field) if is_pointer and held is not None and field is not None else None
    if len(inner) == 2 and inner[0].type == "ERROR" and inner[0].children[-1].type == "->*" and inner[0].named_child_count == 1:
        return inner[0].named_children[0], inner[1]
    return None


def _are_types(node: Syntax, variable: Syntax, types: list[Syntax]) -> bool:
    """Whether all of ``types`` may be types, and no declaration before makes one of them, or the variable, something else."""
    if any(each.type not in _PARAMETERS for each in types):
        return False
    names = [each.text for each in types if each.type == "identifier"]
    return not any(found in names or (is_local and found == variable.text) for found, is_local in _declared_before(node))


def _declared_before(node: Syntax) -> Iterator[tuple[bytes | None, bool]]:
    """The names of the variables and functions in the scopes around a node that are declared before it, and whether in its function."""
    is_local, inner, outer = True, node, node.parent
    while outer is not None:
        for each in _within(outer):
            if each.type in _DECLARING and (each.end_byte <= inner.start_byte or outer.type == "field_declaration_list"):
                yield from ((_name_of(declarator), is_local) for declarator in each.children_by_field_name("declarator"))
        if outer.type == "for_range_loop":
            yield from ((_name_of(declarator), is_local) for declarator in outer.children_by_field_name("declarator"))
        is_local = is_local and outer.type != "function_definition"
        inner, outer = outer, outer.parent


def _within(scope: Syntax) -> Iterator[Syntax]:
    """What stands in a scope: its statements, the parameters of a function, and what a condition declares."""
    yield from scope.named_children
    if scope.type in _FUNCTIONS:
        yield from _parameters_of(scope.child_by_field_name("declarator"))
    condition = scope.child_by_field_name("condition")
    yield from condition.named_children if condition is not None else ()


def _parameters_of(declarator: Syntax | None) -> list[Syntax]:
    """The parameters of a function, by its declarator, which may stand behind a pointer or a reference."""
    while declarator is not None:
        given = declarator.child_by_field_name("parameters")
        if given is not None:
            return given.named_children
        declarator = _inner(declarator)
    return []


def _name_of(declarator: Syntax) -> bytes | None:
    """The name that is declared."""
    found: Syntax | None = declarator
    while found is not None and found.type not in ("identifier", "field_identifier"):
        found = _inner(found)
    return found.text if found is not None else None


def _inner(declarator: Syntax) -> Syntax | None:
    """The declarator behind a pointer, a reference, brackets or parentheses."""
    found = declarator.child_by_field_name("declarator")
    if found is None and declarator.type in ("reference_declarator", "parenthesized_declarator"):
        found = declarator.named_children[-1] if declarator.named_children else None
    return found


def _function_of(call: Syntax | None) -> Syntax | None:
    return call.child_by_field_name("function") if call is not None and call.type == "call_expression" else None
