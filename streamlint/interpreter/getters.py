"""Functions that hand something back and do nothing: no call, no operator, no item, and no attribute that runs code.

Large classes hold hundreds (``def world_size(self): return self._world_size``). Whatever their objects are, none of them
can show an operation, so none is a root.
"""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.index import File

_PLAIN = (p.Attr, p.Name, p.Const, p.Collection, p.Return, p.ExprStatement)


def only_hands_back(function: p.Function, file: File) -> bool:
    """Whether a function of Python only gives what stands in attributes, none of which may be a property."""
    if file.is_cuda or file.is_cython or any(not isinstance(held, p.Name) or held.id != "property" for held in function.decorators):
        return False
    return all(
        isinstance(node, _PLAIN) and not (isinstance(node, p.Attr) and any(held.decorators for held in file.relevance.named(node.name)))
        for statement in function.body
        for node in p.walk(statement)
    )
