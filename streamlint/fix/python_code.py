"""Python source as a fix sees it, by libcst."""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeVar

import libcst as cst
from libcst.metadata import CodePosition, CodeRange

from streamlint.findings import Edit, Span
from streamlint.fix.code import Lines, NotThere
from streamlint.frontends.python_positions import fields, positions

Node = TypeVar("Node", bound=cst.CSTNode)
BINDERS = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor)
COMPOUND = (cst.If, cst.For, cst.While, cst.With, cst.Try, cst.FunctionDef, cst.ClassDef)
BLANK = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine)


class PythonCode(Lines):
    """A module, its nodes by place."""

    def __init__(self, file: str, text: str) -> None:
        super().__init__(file, text)
        try:
            self.module = cst.parse_module(text)
            self._positions = positions(self.module, text, silent=frozenset())
        except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError):
            raise NotThere from None
        self._parents = {child: node for node in self._all() for child in _children(node)}
        self._calls = self._by_row(cst.Call)
        self._statements = self._by_row(cst.SimpleStatementLine, *COMPOUND)
        self._strings = self._by_row(cst.SimpleString)

    def range(self, node: cst.CSTNode) -> CodeRange:
        """Where a node stands: lines from 1, columns from 0."""
        row, column, end_row, end_column = self._positions[node]
        return CodeRange(CodePosition(row, column - 1), CodePosition(end_row, end_column - 1))

    def source(self, node: cst.CSTNode) -> str:
        """A node's own text."""
        return self.module.code_for_node(node).strip()

    # What stands at a place ---------------------------------------------------------------------------------------------------

    def call_at(self, span: Span) -> cst.Call:
        """The call whose function's last name stands at a place, else the smallest one around it.

        Raises NotThere.
        """
        around = []
        for call in self._calls[span.row]:
            name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
            start = self.range(name).start
            if (start.line, start.column + 1) == (span.row, span.column):
                return call
            if self._covers(call, span):
                around.append(call)
        if not around:
            raise NotThere
        return max(around, key=lambda call: (self.range(call).start.line, self.range(call).start.column))

    def statement_at(self, span: Span) -> cst.CSTNode:
        """The smallest statement around a place before which a line can stand.

        Raises NotThere, also for the condition of a ``while``, which is asked again.
        """
        found = [node for node in self._statements[span.row] if self._covers(node, span)]
        if not found:
            raise NotThere
        node: cst.CSTNode = max(found, key=lambda node: (self.range(node).start.line, -self.range(node).end.line))
        while isinstance(node, cst.If) and isinstance(self.parent(node), cst.If):  # an `elif`
            node = self._parents[node]
        if isinstance(node, cst.While) or self.string_around(span):
            raise NotThere
        return node

    def string_around(self, span: Span) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Where the content of the string of several lines around a place begins and ends, if there is one."""
        for node in self._strings[span.row]:
            where = self.range(node)
            if where.start.line < where.end.line and self._covers(node, span):
                lead = len(node.prefix) + len(node.quote)
                return (where.start.line, where.start.column + lead + 1), (where.end.line, where.end.column - len(node.quote) + 1)
        return None

    def _by_row(self, *kinds: type[Node]) -> Mapping[int, list[Node]]:
        """The nodes of some kinds by each row that they stand on."""
        rows: defaultdict[int, list[Node]] = defaultdict(list)
        for node in self._parents:
            if isinstance(node, kinds):
                first, _, last, _ = self._positions[node]
                for row in range(first, last + 1):
                    rows[row].append(node)
        return rows

    def _covers(self, node: cst.CSTNode, span: Span) -> bool:
        where = self.range(node)
        place = (span.row, span.column - 1)
        return (where.start.line, where.start.column) <= place < (where.end.line, where.end.column)

    # What stands around a node ------------------------------------------------------------------------------------------------

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._parents.get(node)

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around a node, from the inside."""
        up = self.parent(node)
        while up is not None:
            yield up
            up = self.parent(up)

    def function_of(self, node: cst.CSTNode) -> cst.CSTNode:
        """The function around a node, else the module."""
        return next((up for up in self.above(node) if isinstance(up, cst.FunctionDef)), self.module)

    def class_of(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return next((up for up in self.above(node) if isinstance(up, cst.ClassDef)), None)

    def loop_of(self, node: cst.CSTNode) -> cst.For | cst.While | None:
        """The innermost loop of its function around a node."""
        for up in self.above(node):
            if isinstance(up, cst.FunctionDef):
                return None
            if isinstance(up, cst.For | cst.While):
                return up
        return None

    def hands_over(self, statement: cst.CSTNode) -> bool:
        """Whether a statement returns or yields: what stands behind it may never run."""
        return any(isinstance(node, cst.Return | cst.Yield | cst.Raise) for node in self.below(statement))

    def follows(self, second: cst.CSTNode, first: cst.CSTNode) -> bool:
        """Whether a statement comes right after another one of the same block."""
        block = self.parent(first)
        if block is not self.parent(second) or not isinstance(block, cst.IndentedBlock | cst.Module):
            return False
        body = list(block.body)
        return any(one is first and two is second for one, two in itertools.pairwise(body))

    def outwards(self, statement: cst.CSTNode, without: cst.CSTNode) -> list[cst.CSTNode]:
        """The loops of its function around a statement that do not hold another one, the outermost first, then the statement."""
        found = [statement]
        for up in self.above(statement):
            if isinstance(up, cst.FunctionDef) or any(up is around for around in self.above(without)):
                break
            if isinstance(up, cst.For | cst.While):
                found.insert(0, up)
        return found

    def dominates(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether a statement has run wherever a later one of the same function runs: its block, or one of `with`, is around that one."""
        if self.function_of(first) is not self.function_of(second) or self.range(first).end.line >= self.range(second).start.line:
            return False
        blocks = set(map(id, self.above(second)))
        up = self.parent(first)
        while isinstance(up, cst.IndentedBlock) and id(up) not in blocks and isinstance(self.parent(up), cst.With):
            up = self.parent(self._parents[up])
        return id(up) in blocks

    def target_of(self, call: cst.Call) -> str:
        """The name that a call's value is given: ``x``, ``self.x``.

        Raises NotThere.
        """
        value: cst.CSTNode = call
        for up in self.above(call):
            if isinstance(up, cst.Assign) and len(up.targets) == 1:
                return self._matching(up.targets[0].target, up.value, value)
            if isinstance(up, cst.AnnAssign):
                return self._matching(up.target, up.value, value)
            if not isinstance(up, cst.Tuple | cst.Element):
                break
            value = up if isinstance(up, cst.Element) else value
        raise NotThere

    def _matching(self, target: cst.BaseExpression, value: cst.CSTNode | None, part: cst.CSTNode) -> str:
        if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple) and len(target.elements) == len(value.elements):
            pairs = zip(target.elements, value.elements, strict=True)
            target = next((one.value for one, two in pairs if two is part or two.value is part), target)
        if not isinstance(target, cst.Name | cst.Attribute):
            raise NotThere
        return self.source(target)

    def stream_entered(self, node: cst.CSTNode) -> tuple[str, cst.CSTNode] | None:
        """What names the stream of the innermost ``with`` around a node that enters one: ``with torch.cuda.stream(x)``, or ``with x`` where
        no other ``with`` is around that could be something else."""
        around: list[cst.With] = []
        for up in self.above(node):
            if isinstance(up, cst.FunctionDef):
                break
            around += [up] if isinstance(up, cst.With) else []
        for block in around:
            for item in reversed(block.items):
                entered = item.item
                if (
                    isinstance(entered, cst.Call)
                    and len(entered.args) == 1
                    and self.source(entered.func).endswith(("stream", "StreamContext"))
                ):
                    entered = entered.args[0].value
                elif len(around) > 1 or len(block.items) > 1:
                    continue
                if isinstance(entered, cst.Name | cst.Attribute):
                    return self.source(entered), block
        return None

    def sees(self, name: str, made: cst.CSTNode, user: cst.CSTNode) -> bool:
        """Whether a name that one node binds is bound at another: the same function before it, ``self`` in the same class, the module."""
        home, here = self.function_of(made), self.function_of(user)
        if name.startswith("self."):
            return self.class_of(made) is not None and self.class_of(made) is self.class_of(user)
        if "." in name:
            return home is here
        return (home is here and self.range(made).start.line < self.range(user).start.line) or home is self.module

    def fresh(self, name: str) -> str:
        """A name that the module does not use."""
        return next(word for word in (name, *(f"{name}_{number}" for number in range(2, 100))) if word not in self._names)

    @functools.cached_property
    def _names(self) -> set[str]:
        return {node.value for node in self._parents if isinstance(node, cst.Name)}

    def called(self, module: str, default: str) -> str:
        """What a module is called here: ``torch``, or what it is imported as.

        Raises NotThere if it is not imported by its own name.
        """
        if module not in self._imports:
            raise NotThere
        return self._imports[module] or default

    @functools.cached_property
    def _imports(self) -> dict[str, str]:
        """The modules that are imported by their own names, each with what its first import calls it, if that is another name."""
        found: dict[str, str] = {}
        for node in self._parents:
            if isinstance(node, cst.ImportAlias) and isinstance(self.parent(node), cst.Import):
                found.setdefault(self.source(node.name), self.source(node.asname.name) if node.asname else "")
        return found

    # Edits --------------------------------------------------------------------------------------------------------------------

    def before(self, statement: cst.CSTNode, *lines: str) -> Edit:
        """New lines above a statement."""
        return self.lines_before(self.range(statement).start.line, *lines)

    def after(self, statement: cst.CSTNode, *lines: str) -> Edit:
        """New lines below a statement."""
        where = self.range(statement)
        return self.lines_after(where.end.line, *lines, like=where.start.line)

    def replaced(self, node: cst.CSTNode, text: str) -> Edit:
        """Another text for a node."""
        where = self.range(node)
        return self.edit(where.start.line, where.start.column + 1, where.end.line, where.end.column + 1, text)

    def with_keyword(self, call: cst.Call, name: str, value: str) -> Edit:
        """A call with a keyword argument, set anew if it is there."""
        for argument in call.args:
            if argument.keyword is not None and argument.keyword.value == name:
                return self.replaced(argument.value, value)
            if argument.star:
                raise NotThere  # the keyword may be in there
        if not call.args:
            end = self.range(call).end
            return self.edit(end.line, end.column, end.line, end.column, f"{name}={value}")
        last = call.args[-1]
        end = self.range(last.value).end
        own_line = isinstance(last.comma, cst.Comma) and self.range(call).start.line < end.line
        lead = f",{self.newline}{self.indent(end.line)}" if own_line else ", "
        return self.edit(end.line, end.column + 1, end.line, end.column + 1, f"{lead}{name}={value}")

    def without_keyword(self, call: cst.Call, name: str) -> Edit:
        """A call without one of its keyword arguments, and without the comma that goes with it.

        Raises NotThere.
        """
        number = next((n for n, given in enumerate(call.args) if given.keyword is not None and given.keyword.value == name), None)
        if number is None:
            raise NotThere
        here = self.range(call.args[number])
        if number + 1 < len(call.args):
            start, end = here.start, self.range(call.args[number + 1]).start
        elif number:
            start, end = self.range(call.args[number - 1].value).end, self.range(call.args[number].value).end
        else:
            start, end = here.start, here.end
        return self.edit(start.line, start.column + 1, end.line, end.column + 1, "")

    def moved_before(self, statement: cst.CSTNode, anchor: cst.CSTNode) -> list[Edit]:
        """A statement's own lines taken out and put above another statement, with that one's indentation."""
        where, lead = self.range(statement), self.indent(self.range(anchor).start.line)
        own = self.indent(where.start.line)
        rows = range(where.start.line, where.end.line + 1)
        lines = [lead + self.lines[row - 1].removeprefix(own) for row in rows]
        start = self.range(anchor).start.line
        return [
            self.edit(start, 1, start, 1, "".join(line + self.newline for line in lines)),
            self.edit(where.start.line, 1, where.end.line + 1, 1, ""),
        ]

    # Names --------------------------------------------------------------------------------------------------------------------

    def below(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes below a node, without blanks and comments."""
        for child in _children(node):
            yield child
            yield from self.below(child)

    def _all(self) -> Iterator[cst.CSTNode]:
        waiting: list[cst.CSTNode] = [self.module]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(list(_children(node))))

    def names_in(self, node: cst.CSTNode) -> list[cst.Name]:
        return [inner for inner in self.below(node) if isinstance(inner, cst.Name)]

    def bound_in(self, loop: cst.CSTNode) -> list[cst.CSTNode]:
        """The names that a loop gives a value, in its head or its body."""
        found: list[cst.CSTNode] = []
        for node in self.below(loop):
            if isinstance(node, BINDERS):
                found += [node.target, *self.names_in(node.target)]
            elif isinstance(node, cst.AsName):
                found += [node.name, *self.names_in(node.name)]
        if isinstance(loop, cst.For):
            found += [loop.target, *self.names_in(loop.target)]
        return found

    def times_bound(self, name: str, loop: cst.CSTNode) -> int:
        """How often a loop's body gives a name a value."""
        return sum(self.source(node) == name for node in self.bound_in(loop) if self.is_target(node))

    def is_target(self, node: cst.CSTNode) -> bool:
        """Whether a node is what is assigned, not a part of it."""
        return isinstance(
            self.parent(node), cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.NamedExpr | cst.For | cst.CompFor | cst.AsName
        )


def _children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes that a node holds, without blanks and comments."""
    for name in fields(type(node)):
        held = getattr(node, name)
        if isinstance(held, cst.CSTNode):
            if not isinstance(held, BLANK):
                yield held
        elif isinstance(held, list | tuple):
            for part in held:
                if isinstance(part, cst.CSTNode) and not isinstance(part, BLANK):
                    yield part
