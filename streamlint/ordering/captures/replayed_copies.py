"""Copies that are captured: they run where their graph is launched, on the memory that its names mean there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.memory.captured import Capture, Captured
from streamlint.ordering.paths.passed_names import PassedNames
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.places import Place, Places
from streamlint.ordering.walk.lifetimes import made_by, pointees
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

_OBJECT = ("parameter", 0)


class Launch(NamedTuple):
    """A launch of a graph, and the place of the graph there."""

    call: ModelledCall
    graph: Place

    @property
    def site(self) -> Site:
        """Where it stands."""
        return Site(self.call.function, self.call.instruction)


class ReplayedCopies:
    """C++: which launches run a copy that a capture has recorded."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.passed = transfer.one_of(PassedNames, transfer, places)

    def launches(self, site: Site) -> Iterator[Launch]:
        """The launches that run the copy of an instruction: of its own function, of methods of the same class, and of what it calls."""
        for graph in self.recorded.get(site, ()):
            yield from (
                launch for launch in self._launches if _is_same(site.function, graph, launch) or self._is_given(site, graph, launch)
            )

    def _is_given(self, site: Site, graph: Place, launch: Launch) -> bool:
        """Whether a launch is of a graph that the function of a copy gives it."""
        return launch.graph in self.passed.inside(site.function, graph, launch.call.function)

    def memory(self, site: Site, launch: Launch, tracked: Iterable[Tracked]) -> frozenset[Tracked]:
        """The memory of such a copy by the names that it has where its graph is launched."""
        if launch.call.function is site.function:
            return frozenset(tracked)
        known = list(tracked)
        own = {held._replace(part=()) for held in known if held.place.root == _OBJECT and _is_of_class(site.function, launch)}
        inside = ((held, self.passed.inside(site.function, held.place, launch.call.function)) for held in known)
        return frozenset(own.union(held._replace(place=place, part=()) for held, places in inside for place in places))

    @cached_property
    def _launches(self) -> list[Launch]:
        sites = self.transfer.sites({"launch"}, where=lambda row: bool(row.get("graph"))) if self.recorded else ()
        given = ((call, call.operands[0]) for call in sites if call.function.is_cpp and call.operands)
        return [Launch(call, place) for call, register in given for place in self.places.names(call.function, register)]

    @cached_property
    def recorded(self) -> dict[Site, list[Place]]:
        """By captured instruction: the graphs that are made of the capture around it."""
        found: dict[Site, list[Place]] = defaultdict(list)
        captured = Captured(self.transfer, self.places)
        for capture in captured.captures():
            function = capture.begin.function
            region = list(captured.region(capture)) if function.is_cpp else []
            graphs = self._made_of(captured, capture) if region else []
            for one in region if graphs else ():
                found[Site(function, one)] += graphs
        return found

    def _made_of(self, captured: Captured, capture: Capture) -> list[Place]:
        """What can be launched of the graph that a capture ends with."""
        function = capture.begin.function
        calls = [call for one in self._calls(function) for call in self.transfer.modelled(function, one)]
        ends = (call for call in calls if captured.is_end(capture, function, call.instruction))
        graphs = {place for call in ends for place in self._ended(call)}
        made = (call for call in calls if call.row.effect == "object" and self._takes(call, graphs))
        return list(dict.fromkeys(place for call in made for place in made_by(self.places, call)))

    def _calls(self, function: Function) -> Iterator[Instruction]:
        return (one for opcode in (op.CALL, op.INVOKE) for one in function.by_opcode[opcode])

    def _ended(self, call: ModelledCall) -> Iterable[Place]:
        """Where the end of a capture puts its graph."""
        held = call.row.get("graph")
        register = call.given(Selector("argument", held.position)) if isinstance(held, Selector) and held.kind == "pointee" else None
        return pointees(self.places, call.function, register) if register is not None else ()

    def _takes(self, call: ModelledCall, graphs: set[Place]) -> bool:
        return any(not graphs.isdisjoint(self.places.names(call.function, register)) for register in call.operands)


def _is_same(function: Function, graph: Place, launch: Launch) -> bool:
    """Whether the graph of a launch is one that a function has made: by its name there, or as the same member of the same class."""
    if launch.graph != graph:
        return False
    return (graph.root == _OBJECT and bool(graph.path) and _is_of_class(function, launch)) or launch.call.function is function


def _is_of_class(function: Function, launch: Launch) -> bool:
    """Whether a launch stands in a method of the same class as another one."""
    other, mine = launch.call.function.method, function.method
    return mine is not None and other is not None and mine.owner is other.owner
