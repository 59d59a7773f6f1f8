"""C++ source as a fix sees it, by tree-sitter."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint.findings import Edit, Span
from streamlint.fix.base import Lines, NotThere

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

STATEMENTS = frozenset(
    "expression_statement declaration return_statement if_statement for_statement for_range_loop while_statement do_statement".split()
)
LOOPS = frozenset("for_statement for_range_loop while_statement do_statement".split())
CALLS = frozenset({"call_expression"})


@functools.cache
def _parser() -> Parser:
    import tree_sitter_cuda  # optional: the parser of C++
    from tree_sitter import Language, Parser  # optional: the same

    return Parser(Language(tree_sitter_cuda.language()))


class CppCode(Lines):
    """A translation unit, its nodes by place."""

    def __init__(self, file: str, text: str) -> None:
        super().__init__(file, text)
        self._bytes = text.encode("utf-8", "surrogatepass")
        self.root = _parser().parse(self._bytes).root_node

    def source(self, node: Node) -> str:
        """A node's own text."""
        return self._bytes[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")

    # What stands at a place ---------------------------------------------------------------------------------------------------

    def node_at(self, span: Span) -> Node:
        """The smallest node at the start of a place.

        Raises NotThere.
        """
        line = self.lines[span.row - 1] if span.row <= len(self.lines) else ""
        point = (span.row - 1, len(line[: span.column - 1].encode("utf-8", "surrogatepass")))
        node = self.root.named_descendant_for_point_range(point, point)
        if node is None or node.type == "translation_unit":
            raise NotThere
        return node

    def call_at(self, span: Span, *names: str) -> Node:
        """The smallest call around a place, of one of the functions that are named.

        Raises NotThere.
        """
        for node in self.upwards(self.node_at(span)):
            if node.type in CALLS and (not names or self.callee(node) in names):
                return node
        raise NotThere

    def statement_at(self, span: Span) -> Node:
        """The smallest statement around a place that stands in a block, so that a line can stand before it.

        Raises NotThere, also for the condition of a loop, which each round evaluates.
        """
        return self.statement_of(self.node_at(span))

    def statement_of(self, node: Node) -> Node:
        for up in self.upwards(node):
            if up.type in LOOPS:
                raise NotThere
            if up.type in STATEMENTS and up.parent is not None and up.parent.type == "compound_statement":
                return up
            if up.type.startswith("preproc"):
                raise NotThere
        raise NotThere

    # What stands around a node ------------------------------------------------------------------------------------------------

    @staticmethod
    def upwards(node: Node) -> Iterator[Node]:
        """A node and those around it."""
        here: Node | None = node
        while here is not None:
            yield here
            here = here.parent

    def function_of(self, node: Node) -> Node:
        """The function or lambda around a node.

        Raises NotThere.
        """
        found = next((up for up in self.upwards(node) if up.type in ("function_definition", "lambda_expression")), None)
        if found is None:
            raise NotThere
        return found

    def outwards(self, statement: Node, without: Node) -> list[Node]:
        """The loops of its function around a statement that do not hold another node, the outermost first, then the statement."""
        found = [statement]
        for up in self.upwards(statement):
            if up.type in ("function_definition", "lambda_expression") or up.start_byte <= without.start_byte < up.end_byte:
                break
            if up.type in LOOPS and up.parent is not None and up.parent.type == "compound_statement":
                found.insert(0, up)
        return found

    def knows(self, name: str, there: Node, here: Node) -> bool:
        """Whether a name of one place means the same at another: the same function, a member, or the null stream."""
        if not name.isidentifier():
            return name in ("0", "nullptr")
        return self.function_of(there) == self.function_of(here) or name.endswith("_")

    def fresh(self, name: str) -> str:
        """A name that the file does not use."""
        return next(word for word in (name, *(f"{name}_{n}" for n in range(2, 100))) if not re.search(rf"\b{word}\b", self.text))

    def within(self, node: Node, *types: str) -> Iterator[Node]:
        """The nodes of some kinds below a node, in order."""
        for child in node.children:
            if child.type in types:
                yield child
            yield from self.within(child, *types)

    def callee(self, call: Node) -> str:
        """The name of the function that is called, with its qualification."""
        function = call.child_by_field_name("function")
        return self.source(function) if function is not None else ""

    def arguments(self, call: Node) -> list[Node]:
        """The arguments of a call."""
        listed = call.child_by_field_name("arguments")
        return [child for child in listed.named_children if child.type != "comment"] if listed is not None else []

    def streams_in(self, function: Node) -> list[str]:
        """The streams that a function is given or declares, by name, in order."""
        text = self.source(function)
        return list(dict.fromkeys(re.findall(r"\bcudaStream_t\s*[&*]?\s*(?:const\s+)?(\w+)\s*[,;)=({]", text)))

    # Edits --------------------------------------------------------------------------------------------------------------------

    def before(self, statement: Node, *lines: str) -> Edit:
        """New lines above a statement."""
        row = statement.start_point[0] + 1
        if self.lines[row - 1][: statement.start_point[1]].strip():
            raise NotThere  # it does not begin its line
        return self.lines_before(row, *lines)

    def replaced(self, node: Node, text: str) -> Edit:
        """Another text for a node."""
        return self.edit(*self._place(node.start_point), *self._place(node.end_point), text)

    def after_node(self, node: Node, text: str) -> Edit:
        """More text behind a node."""
        place = self._place(node.end_point)
        return self.edit(*place, *place, text)

    def shares_its_line(self, node: Node) -> bool:
        """Whether any other code stands on the lines of a node."""
        first, last = self.lines[node.start_point[0]].encode(), self.lines[node.end_point[0]].encode()
        rest = last[node.end_point[1] :].strip()
        return bool(first[: node.start_point[1]].strip() or (rest and not rest.startswith(b"//")))

    def own_lines(self, node: Node) -> list[str]:
        """The lines of a node with their comments, without its indentation."""
        rows = range(node.start_point[0] + 1, node.end_point[0] + 2)
        return [self.lines[row - 1].removeprefix(self.indent(rows[0])) for row in rows]

    def line_deleted(self, node: Node) -> Edit:
        """The lines of a node gone."""
        return self.edit(node.start_point[0] + 1, 1, node.end_point[0] + 2, 1, "")

    def appended(self, call: Node, text: str) -> Edit:
        """One more argument at the end of a call's list."""
        listed = self.arguments(call)
        if not listed:
            raise NotThere
        place = self._place(listed[-1].end_point)
        return self.edit(*place, *place, f", {text}")

    def _place(self, point: tuple[int, int]) -> tuple[int, int]:
        row, column = point[0], point[1]
        line = self.lines[row].encode("utf-8", "surrogatepass")
        return row + 1, len(line[:column].decode("utf-8", "replace")) + 1
