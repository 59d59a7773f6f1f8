"""SL006: two pieces of device work on two streams use one memory, one of them writes it, and nothing orders them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import External, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.new_blocks import NewBlocks
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import BUFFER, STREAM, Tracked
from streamlint.ordering.places.gradients import GRADIENT
from streamlint.ordering.places.places import ANY
from streamlint.ordering.races.beginnings import Beginnings
from streamlint.ordering.races.race_handovers import RaceHandovers
from streamlint.ordering.races.race_judge import AMBIENT_LANE, Race
from streamlint.ordering.races.race_orders import GIVEN, RECYCLED
from streamlint.ordering.streams.lanes import Lane
from streamlint.ordering.streams.unknown_calls import UnknownCalls
from streamlint.transfer.actions import APART, CURRENT, NAMED, UNKNOWN, Copied, Stream, Viewed
from streamlint.transfer.guards import Guards
from streamlint.transfer.origins import Origins
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked, received

Begun = tuple[Function, Instruction, Worked]


class Races(RaceHandovers):
    """Finds the races of a program."""

    resumes = True
    reads_too = True
    """Whether memory that is only read is followed to writes of it."""
    begins: type[Beginnings] = Beginnings
    """What finds the work that is followed."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.beginnings = transfer.one_of(self.begins, transfer, self.places, self.currents)
        self.blocks = NewBlocks(transfer, self.lanes)
        self.unseen = UnknownCalls(transfer, self.places)
        self._moves_modules = False

    def find(self) -> Iterator[Race]:
        """The races of the program, one for each second piece of work."""
        asked = self.transfer.asked
        found = [each for each in self.beginnings.found if asked is None or each[0][0].unit in asked]
        self._moves_modules = any(work.moves for (_, _, work), _ in found) or self._updates_modules()
        for begun, partners in found:
            if begun not in self.beginnings.harmless and self.comes_to(begun[0], None if self.feeds_callers(*begun) else partners):
                self._follow_work(*begun)
        self._follow_collectives()
        self._follow_given([begun for begun, _ in found])
        self._follow_apart([begun for begun, _ in found] if self.is_wide else [])
        for second, race in self._found.items():
            others = dict.fromkeys(calls[-1] for calls in self._ways[second] if calls and calls[-1] not in race.second_calls)
            yield race._replace(others=tuple(others))

    def _updates_modules(self) -> bool:
        """Whether an optimizer of the program takes a step: it writes weights."""
        return any(True for _ in self.transfer.sites({"launch"}, where=lambda row: row.get("updates") is not None))

    def _follow_collectives(self) -> None:
        """An asynchronous collective works on a stream of its own, which the current one waits for where its handle says so."""
        asked = self.transfer.asked
        for call in self.transfer.sites({"collective"}, "asynchronous"):
            function, one = call.function, call.instruction
            if function.is_cpp or call.switch("asynchronous")[1] is not True or not (asked is None or function.unit in asked):
                continue
            for work in self.transfer.works(function, one):
                writes = (*work.writes, *received(call))
                apart = work._replace(stream=Stream(APART, call.result, work.library), writes=writes, evident=False)
                self._meeting = None
                self._follow_accesses(function, one, apart, self.lanes.of(Frame(function, None, None, 0), one, apart.stream))

    def _follow_given(self, found: list[Begun]) -> None:
        """What unknown callers give may be under way on their stream: it meets what works on a stream that is the program's own."""
        self._writes, self._is_evident, self._meeting, self._unknown_work = True, False, None, GIVEN
        for function, parameters in self.given.find(found).items():
            first = next(function.code.instructions())
            self._follow(Site(function, first), Worked(Stream(CURRENT, library="torch"), (), (), "call", "torch"), AMBIENT_LANE)
            registers = [one[2] for one in function.by_opcode[op.PARAM] if one[3] in parameters]
            tracked = {held for register in registers for held in self._names(function, register)}
            tracked |= {held._replace(place=held.place.behind(GRADIENT)) for held in tracked}
            if tracked:
                self.run(self.start(function, first, frozenset(tracked) | self._lane.tracked(STREAM), ()))
        self._unknown_work = ""

    def _follow_apart(self, found: list[Begun]) -> None:
        """What a function writes on the current stream may be under way where one begins whose stream waits for nothing."""
        self._writes, self._is_evident, self._meeting, self._is_shown = True, True, None, False
        for (writer, write, work), function, behind, place in self.apart.find(found):
            self._follow(Site(writer, write), work, AMBIENT_LANE)
            self.run(self.start(function, behind, frozenset({Tracked(BUFFER, place)}) | self._lane.tracked(STREAM), ()))
        self._is_shown = True

    def _follow_block(self, function: Function, one: Instruction, work: Worked, lane: Lane) -> None:
        """New memory of a pool, in which other work of its stream may still be: it meets work on a stream of the program's own."""
        is_there = self.memory.is_on_device(function, work.made, work, lane.kind == NAMED)
        if not is_there or function.is_cpp or not self.blocks.is_busy(function, one, work):
            return
        self._follow(Site(function, one), work, lane)
        self._writes, self._is_evident, self._unknown_work = True, True, RECYCLED
        tracked = frozenset(held for held in self._names(function, work.made) if held.place.root[0] == "register")
        self.run(self.start(function, one, tracked | lane.tracked(STREAM), frozenset()))
        self._unknown_work = ""

    def _follow_unseen(self, function: Function, one: Instruction, work: Worked, lane: Lane) -> None:
        """An unknown call on a stream of the program's own: what it gives and fills is written there. It waits for what it can reach.
        One that is given memory of the host alone works on no device."""
        if work.made < 0 or lane.kind != NAMED or all(self._is_on_no_device(function, one, each) for each in work.reads):
            return
        filled = [each for each in self.unseen.filled(function, one, work) if self.memory.is_on_device(function, each, work, True)]
        self._follow(Site(function, one), work._replace(library=lane.library), lane)
        self._writes = True  # what other libraries do with it is the affair of SL027
        for registers, self._is_evident in (((work.made,), False), (filled, True)):
            names = frozenset(held for register in registers for held in self._names(function, register))
            if not self._is_evident:  # a tuple of several, and of such
                names |= {held._replace(place=held.place.behind(*keys)) for held in names for keys in ((ANY,), (ANY, ANY))}
            state = self.start(function, one, names | lane.tracked(STREAM), frozenset())
            if not names or self._may_have_waited(state, one, lane):
                continue
            self._fills = self._is_evident
            self.run(state)
            self._fills = False

    def done_where(self, state: State, condition: int) -> bool | None:
        """What an unknown call gives may be a tensor: where code asks whether it is one, and it is none, there is nothing to follow."""
        asked = self.guards.asks_for_tensor(state.frame.function, condition) if self._work.assumed else op.NONE
        return False if self.has(state, BUFFER, asked) else super().done_where(state, condition)

    @cached_property
    def guards(self) -> Guards:
        """What code asks of the kind of values."""
        return self.transfer.one_of(Guards, self.transfer)

    def _may_have_waited(self, state: State, one: Instruction, lane: Lane) -> bool:
        """Whether an unknown call can reach its stream, and nothing behind it says that it has not waited for that."""
        is_given = any(self._leads_to_order(state, register, one) for register in dict.fromkeys((one[3], *self._work.reads)))
        return is_given and not self.unseen.is_awaited_behind(state.frame.function, one, lane)

    def _follow(self, site: Site, work: Worked, lane: Lane) -> None:
        """Take work as what the next paths follow."""
        self._site, self._work, self._lane, self._touched, self._loop, self._chosen = site, work, lane, {}, None, {}

    def _follow_work(self, function: Function, one: Instruction, work: Worked) -> None:
        lane = self.lanes.of(Frame(function, None, None, 0), one, self._stream(function, work))
        if lane.kind == UNKNOWN or work.library in self._on_host or self._has_waited(function, one, work):
            return
        if work.assumed:
            self._follow_unseen(function, one, work, lane)
        elif not work.fills:
            self._follow_block(function, one, work, lane)
        elif not self.memory.may_be_view(function, one, work):
            self._follow_accesses(function, one, work, lane)

    def _follow_accesses(self, function: Function, one: Instruction, work: Worked, lane: Lane) -> None:
        """Follow what work writes to any use of it, and what it reads to writes of it."""
        written, read = self._accessed(function, one, work, lane)
        self._follow(Site(function, one), work, lane)
        moved = self.modules.moved(function, work.moves)
        left, updated = self.training.left(function, work.leaves), self.training.updated(function, work.steps)
        stored = (Tracked(BUFFER, self.places.of_name(function, name)) for name in work.symbols)
        run = self.modules.run(function, work.runs if self._moves_modules else ())
        for registers, members, self._writes in ((written, (*moved, *left, *updated, *stored), True), (read, run, False)):
            tracked = {self._in_region(one, register, held) for register in registers for held in self._names(function, register)}
            tracked |= {*members, *(Tracked(BUFFER, place) for place in self.training.held(function, registers))}
            tracked |= set(self.modules.listed(function, registers if self._writes else work.reads))
            tracked |= set(self._of_graphs(function, one, tracked))
            tracked |= set(self.same_members.aliases(function, tracked))
            if not tracked or not (self._writes or self.reads_too):
                continue
            self._loop = self._turning(function, one, work) if self._writes and (work.writes or work.made >= 0) else None
            tracked |= lane.tracked(STREAM) | self._recorded(function, one)
            self.run(self.start(function, one, frozenset(tracked), frozenset()))

    def _of_graphs(self, function: Function, one: Instruction, tracked: set[Tracked]) -> Iterator[Tracked]:
        """What is written is also in the graphs that read it, what is read in those that write it; what a replay reads are the inputs of
        its graph, what it writes are the outputs."""
        graphs = self.beginnings.graphs
        meeting, held_by = (graphs.graphs, graphs.outputs) if self._writes else (graphs.makers, graphs.memory)
        yield from (Tracked(BUFFER, place) for held in tracked for place in meeting(function, held.place))
        for call in (each for each in graphs.replays if each.function is function and each.instruction is one):
            given = (register for register in (call.receiver, *call.all("reads")) if register is not None)
            names = dict.fromkeys(name for register in given for name in self.places.names(function, register))
            yield from (Tracked(BUFFER, place) for name in names for place in held_by(function, name))

    def _accessed(self, function: Function, one: Instruction, work: Worked, lane: Lane) -> tuple[set[int], set[int]]:
        """The registers whose memory on a device work writes, and those that it only reads; it says so, or other work may."""
        in_scope = lane.kind == NAMED and work.stream.kind != APART
        written = {register for register in (*work.writes, work.made) if self.memory.is_on_device(function, register, work, in_scope)}
        read = {register for register in work.reads if self.memory.is_on_device(function, register, work, in_scope)} - written
        if work.made >= 0 and not written and read:
            written = {work.made}
        self._is_evident = bool(written or read or work.moves or work.leaves or work.steps or work.symbols)
        if not self._is_evident and not in_scope and (not function.is_cpp or work.library == "torch"):
            written = self._perhaps_written(function, work)
        if op.DEFINES[one[0]] and any(isinstance(each, Viewed) and each.register in written for each in self.transfer.of(function, one)):
            written.add(one[2])  # what works in place gives back what it has written
        return written, read

    def _is_on_no_device(self, function: Function, call: Instruction, register: int) -> bool:
        """Whether what a call is given is no memory, say the module of its function, or was made or fetched on the host."""
        values = list(self.transfer.values(function, register))
        is_module = call[0] == op.INVOKE and register == call[3] and bool(values) and all(isinstance(each, External) for each in values)
        if is_module or not self.memory.may_be_memory(function, register) or self.memory.is_on_host(function, register):
            return True
        return {each.space for each in self._origins.of(function, register)} == {"host"}

    @cached_property
    def _origins(self) -> Origins:
        return self.transfer.one_of(Origins, self.transfer)

    def _perhaps_written(self, function: Function, work: Worked) -> set[int]:
        """What work writes where nothing says that it is on the host: what is done with it on another stream may tell."""
        used = [each for each in (*work.reads, work.made) if each >= 0]
        if any(self.memory.is_on_host(function, each) or self.memory.is_made_on_host(function, each) for each in used):
            return set()
        return {each for each in (*work.writes, work.made) if self.memory.may_be_memory(function, each)}

    def _has_waited(self, function: Function, one: Instruction, work: Worked) -> bool:
        """Whether the host has waited for the work when the instruction is over."""
        copies = (each for each in self.transfer.of(function, one) if isinstance(each, Copied))
        return work.waits or any(each.asynchronous is False and each.direction in ("h2d", "d2h") for each in copies)
