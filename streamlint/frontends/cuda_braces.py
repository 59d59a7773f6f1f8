"""Functions that a missing brace tears: the parser mends the tree somewhere, and what it then holds is not what the author wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

_NEVER_LOCAL = ("function_definition", "template_declaration", "namespace_definition")
_OWN_SCOPE = ("lambda_expression", "class_specifier", "struct_specifier", "union_specifier")


def lacks_braces(node: Syntax, code: str) -> bool:
    """Whether a tree holds fewer closing braces than opening ones.

    Otherwise no function goes on to the end of the file, whatever the parser made of unknown macros. No block of C++ begins with an
    operator of two sides, as in ``{% if %}``: that is a template, of which a generator makes C++.
    """
    depth, stack = 0, [node]
    while stack:
        current = stack.pop()
        if current.type == "{" and code[current.end_byte : current.end_byte + 1] == "%":
            return False
        if not current.is_missing:
            depth += (current.type == "{") - (current.type == "}")
            stack.extend(current.children)
    return depth > 0


def unfinished(error: Syntax) -> Syntax | None:
    """The head of a function whose body an ERROR has swallowed: a declarator with parameters, and behind it a brace that nothing closes."""
    head: Syntax | None = None
    depth = 0
    for child in error.children:
        if child.type == "function_declarator":
            head, depth = child, 0
        elif child.type == "{":
            depth += head is not None
        elif child.type == "}":
            depth -= 1
        elif child.type in (";", "function_definition") and depth == 0:
            head = None
    return head if depth > 0 else None


def is_torn(function: Syntax) -> bool:
    """Whether a function's closing brace is missing, or it took the one of another: then functions behind it stand inside it."""
    body = function.child_by_field_name("body")
    if body is None or not body.children:
        return False
    return body.children[-1].is_missing or _holds_foreign(body)


def _holds_foreign(body: Syntax) -> bool:
    """Whether a function, a template or a namespace stands among the statements of a body, where C++ allows none."""
    stack = list(body.named_children)
    while stack:
        node = stack.pop()
        if node.type in _NEVER_LOCAL:
            return True
        if node.type not in _OWN_SCOPE:
            stack.extend(node.named_children)
    return False
