"""Python source as a fix sees it, by Python's own parser."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from streamlint.findings import Edit, Span
from streamlint.fix.base import NotThere
from streamlint.fix.python_tree import FUNCTIONS, LOOPS, WITHS, Tree, arguments, keyword, words_in

_SIGN = re.compile(r"#[^\r\n]*|[),]")


class PythonCode(Tree):
    """A module: what stands at a place, and edits of it."""

    # What stands at a place ---------------------------------------------------------------------------------------------------

    def call_at(self, span: Span) -> ast.Call:
        """The call whose function's last name stands at a place, else the smallest one around it.

        Raises NotThere.
        """
        calls = [node for node in self.around(span) if isinstance(node, ast.Call)]
        for call in calls:
            if self._name_at(call) == (span.row, span.column):
                return call
        if not calls:
            raise NotThere
        return max(calls, key=lambda call: (call.lineno, call.col_offset))

    def _name_at(self, call: ast.Call) -> tuple[int, int]:
        """Where the last name of a call's function stands."""
        row, column, end_row, end_column = self.at(call.func)
        return (end_row, end_column - len(call.func.attr)) if isinstance(call.func, ast.Attribute) else (row, column)

    def statement_at(self, span: Span) -> ast.stmt:
        """The smallest statement around a place before which a line can stand.

        Raises NotThere, also for the condition of a ``while``, which each round evaluates.
        """
        statements = [node for node in self.around(span) if isinstance(node, ast.stmt)]
        while statements:
            node = self.on_line(statements.pop())[0]
            if not self._begins_its_line(node) or _is_elif(node, self.parent(node)):
                continue  # `if x: f()`
            if isinstance(node, ast.While) or self.string_around(span):
                break
            return node
        raise NotThere

    def _begins_its_line(self, node: ast.stmt) -> bool:
        row, column = self.at(node)[:2]
        return not self.lines[row - 1][: column - 1].strip()

    # What stands around a node ------------------------------------------------------------------------------------------------

    def loop_of(self, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | None:
        """The innermost loop of its function around a node."""
        for up in self.above(node):
            if isinstance(up, FUNCTIONS):
                return None
            if isinstance(up, LOOPS):
                return up
        return None

    def hands_over(self, statement: ast.stmt) -> bool:
        """Whether a statement returns or yields: what stands behind it may never run."""
        ends = ast.Return | ast.Yield | ast.YieldFrom | ast.Raise
        return any(isinstance(node, ends) for each in self.on_line(statement) for node in ast.walk(each))

    def follows(self, second: ast.stmt, first: ast.stmt) -> bool:
        """Whether a statement comes right after another one of the same block, on a line of its own."""
        block, last = self.block_of(first), self.on_line(first)[-1]
        number = next(number for number, each in enumerate(block) if each is last)
        return block[number + 1 : number + 2] == [second]

    def outwards(self, statement: ast.stmt, without: ast.stmt) -> list[ast.stmt]:
        """The loops of its function around a statement that do not hold another one, the outermost first, then the statement."""
        found = [statement]
        for up in self.above(statement):
            if isinstance(up, FUNCTIONS) or any(up is around for around in self.above(without)):
                break
            if isinstance(up, LOOPS):
                found.insert(0, up)
        return found

    def dominates(self, first: ast.stmt, second: ast.stmt) -> bool:
        """Whether a statement has run wherever a later one of the same function runs: its block, or one of `with`, is around that one."""
        if self.function_of(first) is not self.function_of(second) or self.at(first)[2] >= self.at(second)[0]:
            return False
        blocks = {id(self.block_of(up)) for up in (second, *self.above(second)) if isinstance(up, ast.stmt)}
        block, owner = self.block_of(first), self.parent(first)
        while id(block) not in blocks and isinstance(owner, WITHS):
            block, owner = self.block_of(owner), self.parent(owner)
        return id(block) in blocks

    def target_of(self, call: ast.Call) -> str:
        """The name that a call's value is given: ``x``, ``self.x``.

        Raises NotThere.
        """
        part: ast.AST = call
        here: ast.AST = call
        for up in self.above(call):
            if isinstance(up, ast.Assign) and len(up.targets) == 1:
                return self._matching(up.targets[0], up.value, part)
            if isinstance(up, ast.AnnAssign):
                return self._matching(up.target, up.value, part)
            if not isinstance(up, ast.Tuple):
                break
            part, here = here, up
        raise NotThere

    def _matching(self, target: ast.expr, value: ast.expr | None, part: ast.AST) -> str:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            target = next((one for one, two in zip(target.elts, value.elts, strict=True) if two is part), target)
        if not isinstance(target, ast.Name | ast.Attribute):
            raise NotThere
        return self.source(target)

    def stream_entered(self, node: ast.AST) -> tuple[str, ast.AST] | None:
        """What names the stream of the innermost ``with`` around a node that enters one: ``with torch.cuda.stream(x)``, or ``with x`` where
        no other ``with`` is around that could be something else."""
        around: list[ast.With | ast.AsyncWith] = []
        for up in self.above(node):
            if isinstance(up, FUNCTIONS):
                break
            around += [up] if isinstance(up, WITHS) else []
        for block in around:
            for item in reversed(block.items):
                entered = item.context_expr
                given = arguments(entered) if isinstance(entered, ast.Call) else []
                if isinstance(entered, ast.Call) and len(given) == 1 and self.source(entered.func).endswith(("stream", "StreamContext")):
                    entered = given[0].value if isinstance(given[0], ast.keyword) else given[0]
                elif len(around) > 1 or len(block.items) > 1:
                    continue
                if isinstance(entered, ast.Name | ast.Attribute):
                    return self.source(entered), block
        return None

    def sees(self, name: str, made: ast.AST, user: ast.AST) -> bool:
        """Whether a name that one node binds is bound at another: the same function before it, ``self`` in the same class, the module."""
        home, here = self.function_of(made), self.function_of(user)
        if name.startswith("self."):
            return self.class_of(made) is not None and self.class_of(made) is self.class_of(user)
        if "." in name:
            return home is here
        return (home is here and self.at(made)[0] < self.at(user)[0]) or home is self.module

    def fresh(self, name: str) -> str:
        """A name that the module does not use."""
        if name not in self._fresh:
            self._fresh[name] = next(word for word in (name, *(f"{name}_{number}" for number in range(2, 100))) if not self._names(word))
        return self._fresh[name]

    def _names(self, word: str) -> bool:
        return word in self.text and word in self._words

    @functools.cached_property
    def _fresh(self) -> dict[str, str]:
        return {}

    @functools.cached_property
    def _words(self) -> set[str]:
        return words_in(self.module)

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
        waiting: list[ast.AST] = [self.module]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found.setdefault(alias.name, alias.asname or "")
            for name in ("cases", "finalbody", "orelse", "handlers", "body"):
                inner = getattr(node, name, None)
                waiting += reversed(inner) if isinstance(inner, list) else []
        return found

    # Edits --------------------------------------------------------------------------------------------------------------------

    def before(self, statement: ast.AST, *lines: str) -> Edit:
        """New lines above a statement."""
        return self.lines_before(self.at(statement)[0], *lines)

    def after(self, statement: ast.stmt, *lines: str) -> Edit:
        """New lines below a statement."""
        return self.lines_after(self.at(self.on_line(statement)[-1])[2], *lines, like=self.at(statement)[0])

    def replaced(self, node: ast.AST, text: str) -> Edit:
        """Another text for a node."""
        return self.edit(*self.at(node), text)

    def with_keyword(self, call: ast.Call, name: str, value: str) -> Edit:
        """A call with a keyword argument, set anew if it is there."""
        if (there := keyword(call, name)) is not None:
            return self.replaced(there.value, value)
        if any(given.arg is None for given in call.keywords) or any(isinstance(given, ast.Starred) for given in call.args):
            raise NotThere  # the keyword may be in there
        row, _, end_row, end_column = self.at(call)
        if not (given := arguments(call)):
            return self.edit(end_row, end_column - 1, end_row, end_column - 1, f"{name}={value}")
        last_row, last_column, has_comma = self._end_of(given[-1], call)
        lead = f",{self.newline}{self.indent(last_row)}" if has_comma and row < last_row else ", "
        return self.edit(last_row, last_column, last_row, last_column, f"{lead}{name}={value}")

    def _end_of(self, last: ast.AST, call: ast.Call) -> tuple[int, int, bool]:
        """Where the last argument of a call ends, with the parentheses around it, and whether a comma follows."""
        _, _, row, column = self.at(last)
        _, _, end_row, end_column = self.at(call)
        text, end, comma = self.between(row, column, end_row, end_column - 1), 0, False
        for sign in _SIGN.finditer(text):
            if sign[0] == ")":
                end = sign.end()
            comma = comma or sign[0] == ","
        return (*self._place(text, row, column, end), comma)

    def without_keyword(self, call: ast.Call, name: str) -> Edit:
        """A call without one of its keyword arguments, and without the comma that goes with it.

        Raises NotThere.
        """
        given, mine = arguments(call), keyword(call, name)
        if mine is None:
            raise NotThere
        number = given.index(mine)
        if number + 1 < len(given):
            start, end = self.at(mine)[:2], self.at(given[number + 1])[:2]
        elif number:
            start, end = self.at(given[number - 1])[2:], self.at(mine)[2:]
        else:
            start, end = self.at(mine)[:2], self.at(mine)[2:]
        return self.edit(*start, *end, "")

    def receiver(self, method: ast.Attribute) -> str:
        """What stands before the last dot of a name."""
        return self.source(method)[: -len(method.attr)].rstrip().removesuffix(".").rstrip()

    def moved_before(self, statement: ast.AST, anchor: ast.AST) -> list[Edit]:
        """A statement's own lines taken out and put above another statement, with that one's indentation."""
        first, _, last, _ = self.at(statement)
        start = self.at(anchor)[0]
        lead, own = self.indent(start), self.indent(first)
        lines = [lead + self.lines[row - 1].removeprefix(own) for row in range(first, last + 1)]
        return [
            self.edit(start, 1, start, 1, "".join(line + self.newline for line in lines)),
            self.edit(first, 1, last + 1, 1, ""),
        ]

    # Names --------------------------------------------------------------------------------------------------------------------

    def bound_in(self, loop: ast.AST) -> set[str]:
        """The names that a loop gives a value, in its head or its body, and the parts of what it gives one."""
        targets = list(_targets(loop))
        names = {target if isinstance(target, str) else self.source(target) for target in targets}
        return names.union(*(words_in(target) for target in targets if isinstance(target, ast.AST)))

    def times_bound(self, name: str, loop: ast.AST) -> int:
        """How often a loop's body gives a name a value."""
        return sum((target if isinstance(target, str) else self.source(target)) == name for target in _targets(loop))


def _targets(node: ast.AST) -> Iterator[ast.expr | str]:
    """What is given a value below a node."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign):
            yield from inner.targets
        elif isinstance(inner, ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For | ast.AsyncFor | ast.comprehension):
            yield inner.target
        elif isinstance(inner, ast.withitem) and inner.optional_vars is not None:
            yield inner.optional_vars
        elif isinstance(inner, ast.ExceptHandler) and inner.name:
            yield inner.name
        elif isinstance(inner, ast.alias) and inner.asname:
            yield inner.asname


def _is_elif(node: ast.AST, around: ast.AST | None) -> bool:
    """Whether a statement is the ``elif`` of the one around it."""
    return (
        isinstance(node, ast.If)
        and isinstance(around, ast.If)
        and any(each is node for each in around.orelse)
        and node.col_offset == around.col_offset
    )
