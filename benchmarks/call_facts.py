"""The call graph of the program facts: `call_edges.py compare --graph call_facts:graph`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from streamlint.commands.debug_facts import sources
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import BoundMethod, Instance
from streamlint.facts.files.program import Program
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.facts import Facts
from streamlint.ir import opcodes as op
from streamlint.support.memory import seldom_collected

Target = tuple[str, str]  # file, qualified name


class Graph:
    """`targets(file, line)`: the functions of a package that its instructions on the line may enter."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lines: defaultdict[tuple[str, int], set[Target]] = defaultdict(set)
        self.virtual: list[int] = []  # by call of a method whose receiver has several classes: how many methods it may enter
        with seldom_collected():
            self._facts = Facts(Program(list(sources(root))))
            graph = CallGraph(self._facts)
            functions = [function for unit in self._facts.program.units.values() for function in unit.functions]
            graph.prepare(functions)
            for function in functions:
                for edge in graph.all_calls(function).edges:
                    row = function.code.at(edge.instruction[1])[0]
                    self._lines[self._file(function), row].add((self._file(edge.callee), qualified(edge.callee)))
                self._count(function)

    def __call__(self, file: str, line: int) -> set[Target]:
        return self._lines.get((file, line), set())

    def _file(self, function: Function) -> str:
        return Path(function.unit.path).relative_to(self._root).as_posix()

    def _count(self, function: Function) -> None:
        """Count the targets of method calls whose receivers may be of several classes."""
        frame = self._facts.base(function)
        for one in function.by_opcode[op.INVOKE]:
            receivers = [value for value in self._facts.register(frame, one[3]).values if isinstance(value, Instance)]
            classes = {definition for value in receivers for definition in self._facts.possible_classes(value)}
            targets = {value.method.function for value in self._facts.callees(function, one) if isinstance(value, BoundMethod)}
            if len(classes) > 1 and targets:
                self.virtual.append(len(targets))


def qualified(function: Function) -> str:
    """The qualified name, as the interpreter spells it."""
    above = function.parent
    if above is None or above.code.kind == "module":
        return function.code.name
    return f"{qualified(above)}.{'' if above.code.kind == 'class' else '<locals>.'}{function.code.name}"


def graph(root: Path) -> Callable[[str, int], set[Target]]:
    """`targets(file, line)` for a package."""
    return Graph(root)
