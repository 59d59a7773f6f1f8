"""What in a text does not run: comments and docstrings, whose words say nothing of what code does."""

from __future__ import annotations

import re

from streamlint import program as p

# A string, which is kept, or a comment, which is not.
_COMMENTS = re.compile(r"""(?s)(\"{3}.*?\"{3}|\'{3}.*?\'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\#[^\n]*""")


def without_prose(module: p.Module) -> list[str]:
    """A Python module line by line, with nothing where comments and docstrings stand."""
    lines = _COMMENTS.sub(lambda match: match[1] or "", module.text).splitlines()
    bodies = [module.body, *(function.body for function, _ in p.functions_of(module))]
    bodies += [definition.body for definition in module.classes.values()]
    for body in bodies:
        first = body[0] if body else None
        if isinstance(first, p.ExprStatement) and isinstance(first.value, p.Const) and isinstance(first.value.value, str):
            row, column, end, end_column = first.at
            if not lines[row - 1][: column - 1].strip() and not lines[end - 1][end_column - 1 :].strip():
                lines[row - 1 : end] = [""] * (end - row + 1)
    return lines
