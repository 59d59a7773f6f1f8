"""Lowers where loops take their elements from: an iterator, or a function that is called for each round until it gives a sentinel.

``for x in iter(f, end)`` is lowered as Python runs it (https://docs.python.org/3/library/functions.html#iter): each round calls ``f()``,
and the first result that equals ``end`` ends the loop. So a loop over a queue's ``get`` is what a ``while`` loop with that call would be.
"""

from __future__ import annotations

from typing import NamedTuple

from streamlint.ir import opcodes as op
from streamlint.ir.expressions import ExpressionLowering
from streamlint.program import Attr, Call, Expression, Name, Position


class Source(NamedTuple):
    """An iterator; or a function, or the receiver of a ``method`` (a constant), that each round calls until it gives ``sentinel``."""

    register: int
    method: int = op.NONE
    sentinel: int = op.NONE
    at: Position = (0, 0, 0, 0)


class SourceLowering(ExpressionLowering):
    """Lowers the heads of ``for`` loops and comprehensions."""

    def source(self, iterable: Expression) -> Source:
        """What a loop asks for its elements, evaluated once before it."""
        if not self._is_called_each_round(iterable):
            return self.source_of(self.value(iterable), iterable.at)
        assert isinstance(iterable, Call)
        called, sentinel = (arg.value for arg in iterable.args)
        if isinstance(called, Attr):
            return Source(self.value(called.value), self.k(called.name), self.value(sentinel), iterable.at)
        return Source(self.value(called), op.NONE, self.value(sentinel), iterable.at)

    def source_of(self, iterable: int, at: Position) -> Source:
        """An iterator over the value of a register."""
        return Source(self.emit(op.ITER, at, iterable))

    def _is_called_each_round(self, node: Expression) -> bool:
        """Whether an expression is ``iter(f, end)`` of the language's own function."""
        if not isinstance(node, Call) or not isinstance(node.function, Name) or len(node.args) != 2 or self.is_cpp:
            return False
        return node.function.id == "iter" and self.is_builtin("iter") and not any(arg.keyword or arg.stars for arg in node.args)

    def next_element(self, source: Source, more_at: Position, next_at: Position, body: int, done: int) -> int:
        """Branch to the body, or behind the loop where no element is left; returns the register of the element in the body."""
        if source.sentinel == op.NONE:
            self.builder.branch(self.emit(op.MORE, more_at, source.register), body, done, more_at)
            self.builder.start(body)
            return self.emit(op.NEXT, next_at, source.register)
        if source.method == op.NONE:
            element = self.emit(op.CALL, source.at, source.register, op.NONE)
        else:
            element = self.emit(op.INVOKE, source.at, source.register, source.method, op.NONE)
        is_end = self.emit(op.COMPARE, more_at, self.k("=="), element, source.sentinel)
        self.builder.branch(is_end, done, body, more_at)
        self.builder.start(body)
        return element
