"""Lowers what leaves a body or a scope: ``return``, ``raise``, ``assert``, ``try`` and ``with``.

A ``finally`` stands once. A variable, the selector, says why it was entered; behind it control goes on to where that leads. So nested ones
cost what they are long, and a path keeps its own reason because the selector is a constant on it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from streamlint.ir import opcodes as op
from streamlint.ir.lowering import Frame
from streamlint.ir.statements import STATEMENTS
from streamlint.ir.switches import SwitchLowering
from streamlint.program import NOWHERE, Assert, Body, Expression, Handler, Position, Raise, Return, Try, With

_NORMAL, _RAISED = 0, 1


class ExitLowering(SwitchLowering):
    """Lowers statements that end something."""

    # --- leaving the function

    def _return(self, node: Return) -> None:
        value = op.NONE if node.value is None else self.returned(node.value)
        kept = self.temporary("return")
        if value != op.NONE:
            self.builder.write(kept, value)
        self.leave_to(0, lambda: self.end(op.NONE if value == op.NONE else self.builder.read(kept), node.at))

    def returned(self, node: Expression) -> int:
        """What the function returns."""
        return self.rvalue(node)

    def end(self, value: int, at: Position) -> None:
        """The function returns."""
        self.builder.add(op.RETURN, at, value)

    def _raise(self, node: Raise) -> None:
        value = self.raised if node.value is None else self.value(node.value)
        self.throw(value, node.at)

    def throw(self, value: int, at: Position) -> None:
        """Leave for the innermost handler; without one, the function."""
        if self.builder.ended:
            return
        for depth in range(len(self.frames) - 1, -1, -1):
            handler = self.frames[depth].handler
            if handler is not None:
                landing = handler()
                self.leave_to(depth + 1, lambda: None)
                self.builder.handlers[self.builder.block] = landing
                self.builder.edge(landing)
                break
        else:
            self.leave_to(0, lambda: None)
        if not self.builder.ended:
            self.builder.add(op.RAISE, at, value)

    def _assert(self, node: Assert) -> None:
        holds, fails = self.builder.new_block(), self.builder.new_block()
        self.condition(node.test, holds, fails)
        self.builder.start(fails)
        error = self.builder.define(op.NAME, node.at, self.k("AssertionError"))
        self.throw(error, node.at)
        self.builder.start(holds)

    # --- try

    def _try(self, node: Try) -> None:
        if node.final:
            self.finally_(node)
        elif node.handlers:
            self.handled(node)
        else:
            self.body([*node.body, *node.otherwise])

    def guarded(self, body: Callable[[], None], frame: Frame) -> int:
        """Code whose exceptions a frame sees; the empty block before it."""
        gate, inside = self.builder.new_block(), self.builder.new_block()
        self.builder.jump(gate)
        self.builder.start(gate)
        self.builder.jump(inside)
        self.builder.start(inside)
        self.frames.append(frame)
        self.catching += 1
        body()
        self.catching -= 1
        self.frames.pop()
        return gate

    def handled(self, node: Try) -> None:
        """``try`` with handlers: the block of handlers asks one after the other whether it fits."""
        landing, after = self.builder.new_block(), self.builder.new_block()
        gate = self.guarded(lambda: self.body(node.body), Frame(handler=lambda: landing))
        if not self.builder.predecessors[landing]:  # nothing in it is known to raise: whatever comes first may
            self.builder.handlers[gate] = landing
            self.builder.predecessors[landing].append(gate)
        if not self.builder.ended:
            self.body(node.otherwise)
            self.builder.jump(after)
        self.builder.start(landing)
        raised = self.builder.define(op.CAUGHT, NOWHERE)
        for handler in node.handlers:
            more = self.builder.new_block()
            if handler.type is not None:
                fits = self.builder.new_block()
                kind = self.value(handler.type)
                self.builder.branch(self.builder.define(op.CATCHES, handler.type.at, raised, kind), fits, more, handler.type.at)
                self.builder.start(fits)
            self.handler(handler, raised)
            self.builder.jump(more if node.group else after)
            if handler.type is None:
                self.builder.start(self.builder.new_block())
            else:
                self.builder.start(more)
        if node.group:  # each handler took its share; something may be left
            rest = self.builder.new_block()
            self.builder.branch(self.builder.define(op.UNKNOWN, NOWHERE, raised), rest, after)
            self.builder.start(rest)
        self.throw(raised, NOWHERE)
        self.builder.start(after)

    def handler(self, handler: Handler, raised: int) -> None:
        """The body of one handler."""
        outer = self.raised
        self.raised = raised
        if handler.name:
            self.write_name(handler.name, raised, NOWHERE)
        self.body(handler.body)
        if handler.name and not self.builder.ended and not self.is_cpp:
            self.delete_name(handler.name, NOWHERE)
        self.raised = outer

    def finally_(self, node: Try) -> None:
        """``try`` with ``finally``."""
        inner = Try(node.body, node.handlers, node.otherwise, [], node.group, at=node.at)
        self.with_cleanup(lambda: self._try(inner), node.final)

    def with_cleanup(self, body: Callable[[], None], final: Body) -> None:
        """``body``, and ``final`` however that is left."""
        selector, error = self.temporary("why"), self.temporary("error")
        entry, landing = self.builder.new_block(), self.builder.new_block()
        reasons: list[Callable[[], object]] = []

        def enter(reason: int) -> None:
            if not self.builder.ended:
                self.builder.write(selector, self.builder.constant(reason))
                self.builder.jump(entry)

        def divert(then: Callable[[], object]) -> None:
            reasons.append(then)
            enter(_RAISED + len(reasons))

        self.guarded(body, Frame(divert=divert, handler=lambda: landing))
        enter(_NORMAL)
        self.builder.start(landing)
        self.builder.write(error, self.builder.define(op.CAUGHT, NOWHERE))
        enter(_RAISED)
        self.builder.start(entry)
        self.body(final)
        self.dispatch(selector, error, reasons)

    def dispatch(self, selector: str, error: str, reasons: list[Callable[[], object]]) -> None:
        """Behind a ``finally``: go on to where it was entered for."""
        after = self.builder.new_block()
        raised = lambda: self.throw(self.builder.read(error), NOWHERE)  # noqa: E731
        for reason, then in enumerate((raised, *reasons), _RAISED):
            if self.builder.ended:
                break
            chosen, more = self.builder.new_block(), self.builder.new_block()
            test = self.builder.define(op.COMPARE, NOWHERE, self.k("=="), self.builder.read(selector), self.builder.constant(reason))
            self.builder.branch(test, chosen, more)
            self.builder.start(chosen)
            then()
            self.builder.start(more)
        self.builder.jump(after)
        self.builder.start(after)

    # --- with

    def _with(self, node: With) -> None:
        self.managed(node, 0)

    def managed(self, node: With, index: int) -> None:
        """The managers from ``index`` on, and the body inside of them."""
        if index == len(node.items):
            self.body(node.body)
            return
        context, target = node.items[index]
        manager = self.value(context)
        entered = self.emit(op.ENTER, context.at, manager)
        if node.is_async:
            entered = self.emit(op.AWAIT, context.at, entered)
        if target is not None:
            self.assign(target, entered, target.at)
        landing, after = self.builder.new_block(), self.builder.new_block()
        used: list[None] = []

        def handler() -> int:
            used.append(None)
            return landing

        inside = self.builder.new_block()
        self.builder.jump(inside)
        self.builder.start(inside)
        leave = functools.partial(self.exit, node, manager, op.NONE, context.at)
        frame = Frame(leave=leave, handler=handler)
        self.frames.append(frame)
        self.managed(node, index + 1)
        self.frames.pop()
        if not self.builder.ended:
            leave()
            self.builder.jump(after)
        self.builder.start(landing)
        if used:
            raised = self.builder.define(op.CAUGHT, NOWHERE)
            swallowed, passed = self.builder.new_block(), self.builder.new_block()
            self.builder.branch(self.exit(node, manager, raised, context.at), swallowed, passed)
            self.builder.start(swallowed)
            self.builder.jump(after)
            self.builder.start(passed)
            self.throw(raised, NOWHERE)
        self.builder.start(after)

    def exit(self, node: With, manager: int, raised: int, at: Position) -> int:
        """Leave a context manager."""
        left = self.builder.define(op.EXIT, at, manager, raised)
        return self.builder.define(op.AWAIT, at, left) if node.is_async else left


STATEMENTS[Return] = ExitLowering._return
STATEMENTS[Raise] = ExitLowering._raise
STATEMENTS[Assert] = ExitLowering._assert
STATEMENTS[Try] = ExitLowering._try
STATEMENTS[With] = ExitLowering._with
