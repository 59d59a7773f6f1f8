"""Loops that take a tensor, or the parameters, apart: a wait for each row, expert or parameter, where one for all would do."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import program as p
from streamlint.interpreter.at_hand import class_at_hand, enclosing
from streamlint.interpreter.guards import called_name, lvalue, places_assigned
from streamlint.interpreter.index import File, dotted_name
from streamlint.interpreter.notes import remembered

_DEEPEST = 4


@remembered(4096)
def goes_through_gradients(node: p.Loop, file: File) -> bool:
    """``for p in parameters: p.grad.norm()``: gradients are there in a training step only. Who looks for NaN needs what he finds."""
    if file.is_cuda or node.kind != "for" or "torch" not in file.module.text:
        return False
    names = {part.id for part in p.walk(node.target) if isinstance(part, p.Name)} if node.target is not None else set()
    asked = (part for statement in node.body for part in p.walk(statement) if isinstance(part, p.Attr) and part.name == "grad")
    return any(isinstance(part.value, p.Name) and part.value.id in names for part in asked) and not _looks_for_nan(node)


def _looks_for_nan(node: p.Loop) -> bool:
    calls = (part for statement in node.body for part in p.walk(statement) if isinstance(part, p.Call))
    return any(called_name(call.function) in ("isnan", "isinf", "isfinite") for call in calls)


@remembered(4096)
def reads_parts(node: p.Loop, file: File) -> bool:
    """``for i in range(n): counts[i].item()`` in a module's method: each layer waits for each part."""
    if file.is_cuda or node.kind != "for" or node.target is None or "torch" not in file.module.text:
        return False
    holder, owner = enclosing(file, node)
    if holder is None or holder.name.startswith("__") or owner is None or not _is_module(owner, file, _DEEPEST):
        return False
    names = {part.id for part in p.walk(node.target) if isinstance(part, p.Name)}
    given = places_assigned(node.body)
    return any(_is_part(operand, names, given) for operand in _operands(node))


def _operands(node: p.Loop) -> Iterator[p.Expression]:
    for statement in node.body:
        for part in p.walk(statement):
            if isinstance(part, p.Call) and isinstance(part.function, p.Attr) and part.function.name == "item":
                yield part.function.value
            elif isinstance(part, p.Call) and isinstance(part.function, p.Name) and part.function.id in ("int", "float") and part.args:
                yield part.args[0].value


def _is_part(operand: p.Expression, names: set[str], given: set[str]) -> bool:
    if not isinstance(operand, p.Index) or (lvalue(operand.value) or "") in given:
        return False
    return any(isinstance(part, p.Name) and part.id in names for index in operand.indices for part in p.walk(index))


def _is_module(owner: p.Class, file: File, depth: int) -> bool:
    for base in owner.bases:
        if dotted_name(file, base).startswith("torch.nn."):
            return True
        held = class_at_hand(base, file)
        if depth and held is not None and held[0] is not owner and _is_module(*held, depth - 1):
            return True
    return False
