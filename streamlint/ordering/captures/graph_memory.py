"""What replays of graphs read and write: the memory that their captures have, by the names that it has beside the graphs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.ordering.captures.replayed_copies import ReplayedCopies
from streamlint.ordering.memory.captured import Captured
from streamlint.ordering.paths.passed_names import PassedNames
from streamlint.ordering.places.places import Place, Places
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

_SHARED = ("cell", "global")


class _Read(NamedTuple):
    """The places of a graph and of memory that its capture reads, or writes, as the function of the capture names them."""

    function: Function
    graph: Place
    memory: Place


class GraphMemory:
    """The inputs and outputs of a program's graphs."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.replayed = transfer.one_of(ReplayedCopies, transfer, places)
        self.passed = transfer.one_of(PassedNames, transfer, places)

    def graphs(self, function: Function, memory: Place) -> Iterator[Place]:
        """The graphs that read memory at a place of a function, by their places there."""
        for read in self._reads:
            yield from self._counterparts(read, read.memory, read.graph, function, memory)

    def memory(self, function: Function, graph: Place) -> Iterator[Place]:
        """What a graph reads, by its places in a function."""
        for read in self._reads:
            yield from self._counterparts(read, read.graph, read.memory, function, graph)

    def makers(self, function: Function, memory: Place) -> Iterator[Place]:
        """The graphs that write memory at a place of a function, by their places there."""
        for written in self._outputs:
            yield from self._counterparts(written, written.memory, written.graph, function, memory)

    def outputs(self, function: Function, graph: Place) -> Iterator[Place]:
        """What a graph writes, by its places in a function."""
        for written in self._outputs:
            yield from self._counterparts(written, written.graph, written.memory, function, graph)

    @cached_property
    def _outputs(self) -> list[_Read]:
        found: dict[_Read, None] = {}
        captured = Captured(self.transfer, self.places)
        for capture in captured.captures():
            function, graph = capture.begin.function, capture.graph
            if graph < 0 or function.is_cpp:
                continue
            works = (work for one in captured.region(capture) for work in self.transfer.works(function, one) if not work.assumed)
            written = {register for work in works for register in (work.made, *work.writes) if register >= 0}
            memory = self._names(function, sorted(written))
            found.update((_Read(function, place, held), None) for place in self._names(function, [graph]) for held in memory)
        return [*found, *(each for each, is_written in self._of_cpp if is_written)]

    @cached_property
    def _of_cpp(self) -> dict[tuple[_Read, bool], None]:
        """C++: what captured work reads and writes, by the names of the graphs that are made of it."""
        found: dict[tuple[_Read, bool], None] = {}
        for site, graphs in self.replayed.recorded.items():
            for work in self.transfer.works(*site):
                uses = [(each, False) for each in (*work.reads, *work.writes)] + [(each, True) for each in work.writes]
                for register, is_written in uses if not work.assumed else ():
                    names = self.places.names(site.function, register) if register >= 0 else ()
                    found.update(((_Read(site.function, graph, name), is_written), None) for graph in graphs for name in names)
        return found

    @cached_property
    def replays(self) -> list[ModelledCall]:
        """The replays of the program's graphs whose inputs or outputs are known."""
        is_any = bool(self._reads or self._outputs)
        return list(self.transfer.sites({"launch"}, where=lambda row: bool(row.get("graph")))) if is_any else []

    @cached_property
    def _reads(self) -> list[_Read]:
        found: dict[_Read, None] = {}
        for each in Captured(self.transfer, self.places).find():
            function, graph = each.capture.begin.function, each.capture.graph
            for name in self.places.names(function, graph) if graph >= 0 and not (function.is_cpp or each.is_inside) else ():
                memory = [place for held in each.tracked for place in self._kept(function, held.place)]
                found.update((_Read(function, place, held), None) for place in self._kept(function, name) for held in memory)
        return [*found, *(each for each, is_written in self._of_cpp if not is_written)]

    def _names(self, function: Function, registers: list[int]) -> list[Place]:
        """The names of what registers hold, and where their function puts it."""
        names = (name for register in registers for name in self.places.names(function, register))
        return [place for name in names for place in self._kept(function, name)]

    def _kept(self, function: Function, place: Place) -> Iterator[Place]:
        """A place, and where its function puts what is there."""
        yield place
        register = int(str(place.root[1])) if place.root[0] == "register" and not place.path else -1
        for use in function.uses.get(register, ()) if register >= 0 else ():
            yield from (target for target, given in self.places.assigned(function, use) if given == register)

    def _counterparts(self, read: _Read, known: Place, other: Place, function: Function, place: Place) -> Iterator[Place]:
        """Where the other one of two is, if a place may be the known one: in one function, or as attributes of one object."""
        if place == known and (function is read.function or known.root[0] in _SHARED):
            yield other
        elif known.root == other.root == ("parameter", 0) and self._ends_so(read.function, known, function, place):
            yield Place(place.root, (*place.path[: len(place.path) - len(known.path)], *other.path))
        elif read.function.is_cpp and place.root[0] == "parameter" and place in self.passed.inside(read.function, known, function):
            yield from self.passed.inside(read.function, other, function)

    def _ends_so(self, home: Function, known: Place, function: Function, place: Place) -> bool:
        """Whether a place is that of the same attribute of an object, which may be of the class of a method."""
        if home.method is None or not known.path or place.path[-len(known.path) :] != known.path:
            return False
        if place.root != ("parameter", 0) or len(place.path) > len(known.path):
            return True
        mine, theirs = home.method.owner, function.method.owner if function.method is not None else None
        derives = self.transfer.facts.hierarchy.derives
        return mine is not None and theirs is not None and (derives(mine, theirs) or derives(theirs, mine))
