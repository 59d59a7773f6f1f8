"""Lowers statements: assignments, branches, loops, and what leaves them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from streamlint.ir import opcodes as op
from streamlint.ir.expressions import EXPRESSIONS
from streamlint.ir.lowering import Frame, annotation_text
from streamlint.ir.sources import Source, SourceLowering
from streamlint.program import (
    Assign,
    AssignExpr,
    Attr,
    Block,
    Body,
    Break,
    Call,
    Clause,
    Collection,
    Comprehension,
    Continue,
    Delete,
    Deref,
    Expression,
    ExprStatement,
    If,
    Import,
    Index,
    Loop,
    Mapping,
    Name,
    Position,
    Scope,
    Starred,
    Statement,
)

_KEYWORDS = {"while": 5, "do": 2, "c-for": 3}


def _keyword_of(node: Loop) -> Position:
    """The place of a loop as a whole: that of the word it begins with, which stands on one line."""
    row, column = node.at[:2]
    return row, column, row, column + _KEYWORDS[node.kind]


def _are_alike(target: Expression, value: Expression) -> bool:
    """Whether a target takes each item of a display by itself."""
    if not isinstance(target, Collection) or not isinstance(value, Collection) or value.kind == "set":
        return False
    return len(target.items) == len(value.items) and not any(isinstance(each, Starred) for each in (*target.items, *value.items))


def _pairs(target: Expression, value: Expression) -> Iterator[tuple[Expression, Expression]]:
    """The targets, each with the item that it takes."""
    if isinstance(target, Collection) and isinstance(value, Collection) and _are_alike(target, value):
        for pair in zip(target.items, value.items, strict=True):
            yield from _pairs(*pair)
    else:
        yield target, value


class StatementLowering(SourceLowering):
    """Lowers statements that need no frame of exceptions."""

    def body(self, body: Body) -> None:
        """Statements one after the other. What stands behind a ``return`` is lowered as well, and dropped as unreachable."""
        for statement in body:
            if self.builder.ended:
                self.builder.start(self.builder.new_block())
            STATEMENTS[statement.__class__](self, statement)

    # --- assignments

    def assign(self, target: Expression, value: int, at: Position) -> None:
        """Store a register in an assignment target."""
        if isinstance(target, Name):
            self.write_name(target.id, value, at)
        elif isinstance(target, Attr):
            self.builder.add(op.SET_ATTR, at, self.value(target.value), self.k(target.name), value)
        elif isinstance(target, Index):
            receiver = self.value(target.value)
            self.builder.add(op.SET_ITEM, at, receiver, self.subscript(target), value)
        elif isinstance(target, Collection):
            self.unpack(target, value, at)
        elif isinstance(target, Starred):
            self.assign(target.value, value, at)
        elif isinstance(target, Deref):
            self.builder.add(op.SET_DEREF, at, self.value(target.value), value)
        else:
            # C++: a call that gives a reference, a conditional lvalue.
            self.builder.add(op.SET_DEREF, at, self.value(target), value)
        if self.catching and not isinstance(target, Name | Collection):
            self.may_raise()

    def unpack(self, target: Collection, value: int, at: Position) -> None:
        """``a, *b = value``."""
        star = next((index for index, item in enumerate(target.items) if isinstance(item, Starred)), op.NONE)
        count = len(target.items)
        parts = [self.emit(op.UNPACK, item.at, value, index, count, star) for index, item in enumerate(target.items)]
        for item, part in zip(target.items, parts, strict=True):
            if self.declaring:
                self.code.declared.setdefault(part, self.declaring)
            self.assign(item, part, at)

    def _assign(self, node: Assign) -> None:
        if node.value is None:
            self.declare_annotation(node)
            return
        if node.op is not None:
            self.augment(node.targets[0], node.op, node.value, node.at)
            return
        if not node.commented and len(node.targets) == 1 and _are_alike(node.targets[0], node.value):
            self.pairwise(node.targets[0], node.value, node.at)
            return
        value = self.value(node.value)
        self.declare_annotation(node)
        for target in node.targets:
            self.assign_declared(target, value, node.at, node.annotation if node.commented else None)

    def pairwise(self, target: Expression, value: Expression, at: Position) -> None:
        """``a, b = x, y``: each name is given its value, and no tuple is made."""
        pairs = list(_pairs(target, value))
        given = [self.value(each) for _, each in pairs]
        for (item, _), register in zip(pairs, given, strict=True):
            self.assign(item, register, at)

    def assign_declared(self, target: Expression, value: int, at: Position, annotation: Expression | None) -> None:
        """An assignment of whose value a comment may declare something; of each part, where it is unpacked."""
        self.declaring = annotation_text(annotation)
        if self.declaring and not isinstance(target, Collection):
            self.code.declared.setdefault(value, self.declaring)
        self.assign(target, value, at)
        self.declaring = ""

    def declare_annotation(self, node: Assign) -> None:
        """An annotated name or attribute: its declared type is kept for the program's facts."""
        text = annotation_text(node.annotation)
        if node.commented and isinstance(node.targets[0], Name):
            return
        target = node.targets[0]
        if text and isinstance(target, Attr):
            self.module.annotate(self.code, f"{annotation_text(target.value)}.{target.name}", text)
        elif text and isinstance(target, Name):
            self.module.annotate(self.code, target.id, text)

    def augment(self, target: Expression, operator: str, operand: Expression, at: Position) -> tuple[int, int]:
        """``target op= operand``: the receiver and the index are evaluated once. The values before and behind it."""
        kind = self.k(operator)
        if isinstance(target, Attr):
            receiver, name = self.value(target.value), self.k(target.name)
            before = self.emit(op.ATTR, target.at, receiver, name)
            after = self.emit(op.INPLACE, at, kind, before, self.value(operand))
            self.builder.add(op.SET_ATTR, at, receiver, name, after)
        elif isinstance(target, Index):
            receiver, index = self.value(target.value), self.subscript(target)
            before = self.emit(op.ITEM, target.at, receiver, index)
            after = self.emit(op.INPLACE, at, kind, before, self.value(operand))
            self.builder.add(op.SET_ITEM, at, receiver, index, after)
        elif isinstance(target, Deref):
            pointer = self.value(target.value)
            before = self.emit(op.DEREF, target.at, pointer)
            after = self.emit(op.INPLACE, at, kind, before, self.value(operand))
            self.builder.add(op.SET_DEREF, at, pointer, after)
        else:
            before = self.value(target)
            after = self.emit(op.INPLACE, at, kind, before, self.value(operand))
            self.assign(target, after, at)
        return before, after

    def _assign_expression(self, node: AssignExpr) -> int:
        if node.op is not None:
            before, after = self.augment(node.target, node.op, node.value, node.at)
            return before if node.before else after
        value = self.assigned(node)
        self.assign_declared(node.target, value, node.at, node.annotation)
        return value

    def assigned(self, node: AssignExpr) -> int:
        """The value that an assignment in an expression gives its target."""
        return self.rvalue(node.value)

    def rvalue(self, node: Expression) -> int:
        """The value that initialises another object; C++ copies an lvalue."""
        return self.value(node)

    def _delete(self, node: Delete) -> None:
        stack = list(reversed(node.targets))
        while stack:
            target = stack.pop()
            if isinstance(target, Name):
                self.delete_name(target.id, node.at)
            elif isinstance(target, Attr):
                self.builder.add(op.DEL_ATTR, node.at, self.value(target.value), self.k(target.name))
            elif isinstance(target, Index):
                receiver = self.value(target.value)
                self.builder.add(op.DEL_ITEM, node.at, receiver, self.subscript(target))
            elif isinstance(target, Collection):
                stack.extend(reversed(target.items))
            if self.catching:
                self.may_raise()

    def _import(self, node: Import) -> None:
        for local, module, name in node.names:
            register = self.emit(op.IMPORT, node.at, self.k(module), op.NONE if name is None else self.k(name))
            if local != "*":
                self.write_name(local, register, node.at)

    def _expression(self, node: ExprStatement) -> None:
        if isinstance(node.value, Call) and self.in_place(node.value):
            return
        self.value(node.value)

    def in_place(self, node: Call) -> bool:
        """Whether a call was a block of statements, lowered here."""
        return False

    def _scope(self, node: Scope) -> None:
        """``global`` and ``nonlocal`` were read with the scope."""

    def _block(self, node: Block) -> None:
        self.block(node)

    def block(self, node: Block) -> None:
        """Statements in braces."""
        self.body(node.body)

    def close(self, depth: int) -> None:
        """The normal end of a scope: what was declared since ``depth`` is destroyed."""
        while len(self.frames) > depth:
            frame = self.frames.pop()
            if frame.leave is not None and not self.builder.ended:
                frame.leave()

    # --- branches

    def _if(self, node: If) -> None:
        after = self.builder.new_block()
        while True:
            then, otherwise = self.builder.new_block(), self.builder.new_block()
            self.condition(node.test, then, otherwise)
            self.builder.start(then)
            self.body(node.then)
            self.builder.jump(after)
            self.builder.start(otherwise)
            if len(node.otherwise) == 1 and isinstance(node.otherwise[0], If):
                node = node.otherwise[0]
                continue
            self.body(node.otherwise)
            break
        self.builder.jump(after)
        self.builder.start(after)

    # --- loops

    def _loop(self, node: Loop) -> None:
        self.loop(node)

    def loop(self, node: Loop) -> None:
        """Any loop."""
        self.body(node.init)
        if node.kind == "for":
            self.for_loop(node)
        else:
            self.while_loop(node)

    def for_loop(self, node: Loop) -> None:
        """``for target in iterable``."""
        assert node.iterable is not None
        assert node.target is not None
        source = self.source(node.iterable)
        head, body, done, after = (self.builder.new_block() for _ in range(4))
        self.builder.jump(head)
        self.builder.start(head, sealed=False)
        element = self.next_element(source, node.at, node.target.at, body, done)
        self.frames.append(Frame(after=after, next_round=head))
        depth = len(self.frames)
        self.loop_target(node, self.emit(op.AWAIT, node.target.at, element) if node.is_async else element)
        self.body(node.body)
        self.close(depth)
        self.frames.pop()
        self.builder.jump(head)
        self.builder.seal(head)
        self.builder.start(done)
        self.body(node.otherwise)
        self.builder.jump(after)
        self.builder.start(after)

    def loop_target(self, node: Loop, element: int) -> None:
        """Bind the element of a round."""
        assert node.target is not None
        self.assign(node.target, element, node.target.at)

    def while_loop(self, node: Loop) -> None:
        """``while``, ``do`` and C's ``for``: test, body, update."""
        head, body, next_round, done, after = (self.builder.new_block() for _ in range(5))
        self.builder.jump(body if node.kind == "do" else head, _keyword_of(node))
        if node.kind != "do":
            self.loop_test(node, head, body, done)
        self.builder.start(body, sealed=node.kind != "do")
        self.frames.append(Frame(after=after, next_round=next_round))
        self.body(node.body)
        self.frames.pop()
        self.builder.jump(next_round)
        self.builder.start(next_round)
        if node.update is not None:
            self.value(node.update)
        self.builder.jump(head)
        if node.kind == "do":
            self.loop_test(node, head, body, done)
        self.builder.seal(head)
        self.builder.seal(body)
        self.builder.start(done)
        self.body(node.otherwise)
        self.builder.jump(after)
        self.builder.start(after)

    def loop_test(self, node: Loop, head: int, body: int, done: int) -> None:
        """The block that decides whether there is one more round."""
        self.builder.start(head, sealed=node.kind == "do")
        if node.test is None:
            self.builder.jump(body, node.at)
        else:
            self.condition(node.test, body, done)

    def _break(self, node: Break) -> None:
        self.leave_loop(node, lambda frame: frame.after)

    def _continue(self, node: Continue) -> None:
        self.leave_loop(node, lambda frame: frame.next_round)

    def leave_loop(self, node: Statement, target: Callable[[Frame], int]) -> None:
        """``break`` or ``continue``: to the innermost frame that has such a target."""
        for depth in range(len(self.frames) - 1, -1, -1):
            block = target(self.frames[depth])
            if block != op.NONE:
                self.leave_to(depth + 1, functools.partial(self.builder.jump, block, node.at))
                return
        self.builder.add(op.UNREACHABLE, node.at)

    # --- comprehensions

    def _comprehension(self, node: Comprehension) -> int:
        if node.kind == "generator":
            return self.generator(node)
        found = self.builder.define(op.DICT, node.at) if node.kind == "dict" else self.builder.define(op.BUILD, node.at, self.k(node.kind))
        self.clauses(node.clauses, lambda: self.add_element(found, node), self.source(node.clauses[0].iterable))
        return found

    def add_element(self, found: int, node: Comprehension) -> None:
        """One more element of a list, set or dict."""
        if isinstance(node.element, Mapping) and node.kind == "dict":
            key, value = node.element.items[0]
            register = self.optional(key)
            self.builder.add(op.PUT, node.element.at, found, register, self.value(value))
        else:
            self.builder.add(op.APPEND, node.element.at, found, self.value(node.element))

    def clauses(self, clauses: tuple[Clause, ...], element: Callable[[], None], first: Source) -> None:
        """The loops of a comprehension around its element; their targets are names of their own."""
        self.renamed.append({})
        heads: list[tuple[int, int]] = []
        for number, clause in enumerate(clauses):
            source = self.source(clause.iterable) if number else first
            head, body, after = (self.builder.new_block() for _ in range(3))
            self.builder.jump(head)
            self.builder.start(head, sealed=False)
            value = self.next_element(source, clause.iterable.at, clause.target.at, body, after)
            for name in self.target_names(clause.target):
                self.hide(name)
            self.assign(clause.target, self.emit(op.AWAIT, clause.target.at, value) if clause.is_async else value, clause.target.at)
            for test in clause.tests:
                fits = self.builder.new_block()
                self.condition(test, fits, head)
                self.builder.start(fits)
            heads.append((head, after))
        element()
        for head, after in reversed(heads):
            self.builder.jump(head)
            self.builder.seal(head)
            self.builder.start(after)
        self.renamed.pop()

    def target_names(self, target: Expression) -> list[str]:
        """The names that a comprehension's target binds."""
        raise NotImplementedError

    def generator(self, node: Comprehension) -> int:
        """A generator expression: a code of its own."""
        raise NotImplementedError


STATEMENTS: dict[type, Callable[[Any, Any], None]] = {
    Assign: StatementLowering._assign,
    Delete: StatementLowering._delete,
    Import: StatementLowering._import,
    ExprStatement: StatementLowering._expression,
    Scope: StatementLowering._scope,
    Block: StatementLowering._block,
    If: StatementLowering._if,
    Loop: StatementLowering._loop,
    Break: StatementLowering._break,
    Continue: StatementLowering._continue,
}
"""By node; other modules of the lowering add theirs."""
EXPRESSIONS[AssignExpr] = StatementLowering._assign_expression
EXPRESSIONS[Comprehension] = StatementLowering._comprehension
