"""Both arms of each ``if`` exchanged, and its test negated."""

from __future__ import annotations

import libcst as cst
from rename import File
from rewrites.labels import Label
from rewrites.trees import parsed


def rewrite(files: list[File], wanted: list[Label]) -> list[File] | None:
    done = _Swap()
    changed = [File(f.name, f.language, parsed(f.text).visit(done).code) if f.language == "python" else f for f in files]
    return changed if done.count else None


class _Swap(cst.CSTTransformer):
    def __init__(self) -> None:
        self.count = 0

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        if _says_where(original_node.test):
            return updated_node
        self.count += 1
        then, other = updated_node.body, updated_node.orelse
        if isinstance(other, cst.If):
            first: cst.BaseSuite = cst.IndentedBlock([other])
        elif other is not None:
            first = other.body
        else:
            first = cst.IndentedBlock([cst.SimpleStatementLine([cst.Pass()])])
        if isinstance(then, cst.IndentedBlock) and isinstance(first, cst.IndentedBlock):
            # The label of the head stays with the head.
            first, then = first.with_changes(header=then.header), then.with_changes(header=cst.TrailingWhitespace())
        return updated_node.with_changes(test=_negated(updated_node.test), body=first, orelse=cst.Else(then))

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.IfExp:
        if "\n" in cst.Module([]).code_for_node(original_node):
            return updated_node  # a label would stay behind, in the whitespace between the arms
        self.count += 1
        return updated_node.with_changes(
            test=_negated(updated_node.test), body=_grouped(updated_node.orelse), orelse=_grouped(updated_node.body)
        )


def _says_where(test: cst.BaseExpression) -> bool:
    """``if __name__ == …`` and ``if TYPE_CHECKING``: idioms, which nobody turns round."""
    code = cst.Module([]).code_for_node(test)
    return "__name__" in code or "TYPE_CHECKING" in code


def _negated(test: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _grouped(test.expression)
    return cst.UnaryOperation(cst.Not(), _grouped(test), lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _grouped(node: cst.BaseExpression) -> cst.BaseExpression:
    return node if node.lpar else node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
