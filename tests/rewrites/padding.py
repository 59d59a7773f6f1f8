"""Statements that have nothing to do with the matter, and code that never runs, between all statements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import libcst as cst
from rename import File
from rewrites.labels import Label
from rewrites.trees import first_free, made, parsed

_PADDING = (
    "unrelated_{n} = {n} + 1\n",
    "if False:\n    print('never', {n})\n",
    "print('here')\n",
    "table_{n} = {{'left': {n}, 'right': 'text'}}\n",
    "for turn_{n} in range(2):\n    unrelated_{n} = turn_{n} * 2\n",
)
_GONE = "unrelated_{n} = 'behind the end'\n"


def rewrite(files: list[File], wanted: list[Label]) -> list[File] | None:
    done = _Pad()
    changed = [File(f.name, f.language, parsed(f.text).visit(done).code) if f.language == "python" else f for f in files]
    return changed if done.count else None


class _Pad(cst.CSTTransformer):
    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.count = 0
        self.classes: list[cst.CSTNode] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.classes.append(node.body)

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        return False

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        if any(original_node is body for body in self.classes):
            return updated_node
        return updated_node.with_changes(body=self._padded(updated_node.body))

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        return updated_node.with_changes(body=self._padded(updated_node.body))

    def _padded(self, body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        head = first_free(body)
        found = list(body[:head])
        for statement in body[head:]:
            self.count += 1
            number = next(self.numbers)
            text = _PADDING[number % len(_PADDING)].format(n=number)
            found += [made(text), statement]
        if found and _leaves(found[-1]):
            found.append(made(_GONE.format(n=next(self.numbers))))
        return found


def _leaves(statement: cst.CSTNode) -> bool:
    last = statement.body[-1] if isinstance(statement, cst.SimpleStatementLine) else None
    return isinstance(last, cst.Return | cst.Raise | cst.Break | cst.Continue)
