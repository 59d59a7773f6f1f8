"""Whether the program facts know in which kinds of memory the tensors of a package were when its tests ran.

    python benchmarks/known_kinds.py PACKAGE KINDS [CALLERS…] [--missed N]

PACKAGE is the package's folder, KINDS what observed_kinds.py wrote, CALLERS folders of what calls the package, read with it. A
kind is *named* where a fact says it, *open* where a fact says that a tensor of any kind, or a value of which nothing is known, may be
there, and *missed* where the facts rule it out.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from call_facts import qualified

from streamlint.commands.debug_facts import sources
from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Instance, Memory, Object, Unknown
from streamlint.facts.files.program import Program
from streamlint.facts.graph.facts import Facts
from streamlint.facts.values.nodes import Node
from streamlint.support.memory import seldom_collected

Row = tuple[str, str, str, str]  # file, qualified name of a function or class, parameter or ``.attribute``, kind


class Known:
    """The facts of a package, asked for kinds of memory."""

    def __init__(self, package: Path, callers: Sequence[Path]) -> None:
        self.package = package
        self.facts = Facts(Program(list(chain(*map(sources, [package, *callers])))))
        self._functions: dict[tuple[str, str], list[Function]] = defaultdict(list)
        self._classes: dict[tuple[str, str], list[ClassInfo]] = defaultdict(list)
        for unit in self.facts.program.units.values():
            file = Path(unit.path)
            if file.is_relative_to(package):
                name = file.relative_to(package).as_posix()
                for function in unit.functions:
                    self._functions[name, qualified(function)].append(function)
                for definition in unit.classes:
                    self._classes[name, definition.name].append(definition)

    def verdict(self, row: Row) -> str:
        """``named``, ``open`` or ``missed``."""
        file, owner, name, kind = row
        nodes = list(self._attribute(file, owner, name[1:]) if name.startswith(".") else self._parameter(file, owner, name))
        for node in nodes:
            self.facts.solver.demand(node)
        self.facts.solver.solve()
        said = {word for node in nodes for value in node.values for word in _words(value)}
        return "named" if kind in said else "open" if "open" in said or (kind != "cuda" and "host" in said) else "missed"

    def _parameter(self, file: str, owner: str, name: str) -> Iterator[Node]:
        for function in self._functions.get((file, owner), ()):
            for index, parameter in enumerate(function.code.parameters):
                if parameter.name == name:
                    yield self.facts.argument(function, index)

    def _attribute(self, file: str, owner: str, name: str) -> Iterator[Node]:
        for definition in self._classes.get((file, owner), ()):
            yield self.facts.attribute(self.facts.objects(Instance, definition, False), name)


def _words(value: Object) -> Iterator[str]:
    """The kinds that an object of the facts may be; ``open`` for any, ``host`` for any of the host."""
    if isinstance(value, Unknown):
        yield "open"
    elif isinstance(value, Memory):
        if value.space in ("device", "managed"):
            yield "cuda"
        elif value.space == "host":
            yield value.pinning if value.pinning in ("pageable", "pinned") else "host"
        else:
            yield "open"


def table(package: str, rows: Iterable[Row], known: Known, missed: int) -> Iterator[str]:
    """The result in Markdown, and what was missed."""
    counts: Counter[tuple[str, str]] = Counter()
    lost: list[Row] = []
    for row in rows:
        verdict = known.verdict(row)
        counts["attributes" if row[2].startswith(".") else "parameters", verdict] += 1
        if verdict == "missed":
            lost.append(row)
    yield "| package | of | observed kinds | named | open | missed |"
    yield "|---|---|---:|---:|---:|---:|"
    for what in ("parameters", "attributes"):
        parts = [counts[what, verdict] for verdict in ("named", "open", "missed")]
        yield f"| {package} | {what} | {sum(parts)} | {' | '.join(map(str, parts))} |"
    for file, owner, name, kind in lost[:missed]:
        yield f"{file}: {owner}({name}): {kind}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("kinds", type=Path)
    parser.add_argument("callers", type=Path, nargs="*")
    parser.add_argument("--missed", type=int, default=0, metavar="N", help="print this many kinds that the facts rule out")
    words = parser.parse_args()
    rows: list[Row] = [tuple(row) for row in json.loads(words.kinds.read_text(encoding="utf-8"))]
    folders = words.package.resolve(), [one.resolve() for one in words.callers]
    with seldom_collected():
        print("\n".join(table(words.package.name, rows, Known(*folders), words.missed)))


if __name__ == "__main__":
    main()
