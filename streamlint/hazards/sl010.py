"""SL010: a copy to pageable memory on the default stream, while another thread works on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from streamlint.checks.sl010_pageable_d2h_stall import PageableD2hStall
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Instance, LibraryObject, Site
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Copy, Direction, Memory
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.seldom import Seldom
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.streams.array_streams import array_of, is_made_without
from streamlint.ordering.streams.device_work import DeviceWork, Handful
from streamlint.ordering.streams.streams import Currents
from streamlint.ordering.threads.threads import Started, Threads
from streamlint.support.memo import memoized
from streamlint.transfer.actions import CURRENT, NAMED, Copied, Stream
from streamlint.transfer.contexts import Known
from streamlint.transfer.host_copies import HostCopies
from streamlint.transfer.lifting import HIGHEST, lifted, named_above
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.numba_kernels import launched
from streamlint.transfer.origin import Origin
from streamlint.transfer.origins import Origins
from streamlint.transfer.transfer import CALLING

RULE = PageableD2hStall
_FETCHING = frozenset({"copy", "transfer", "read", "view"})
_WORK = frozenset({"launch", "memset", "collective"})
Judges = Callable[[Function, Instruction], bool]
"""Whether an instruction is work on a device."""


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    search = _Search(context)
    if not search.threads.started:
        return
    for function, one in context.transfer.candidates(_FETCHING, where=_may_fetch):
        if trail := search.beside(Site(function, one)):
            calls = (call for call in context.transfer.modelled(function, one) if call.row.effect in _FETCHING and _may_fetch(call.row))
            if (found := next(filter(search.holds_all, calls), None)) is not None and not search.is_seldom(Site(function, one)):
                yield search.report(found, trail)


def _may_fetch(row: Row) -> bool:
    """Whether calls with a row may bring memory to the host: of views those that copy it there on request."""
    return row.effect != "view" or row.get("fetches") is not None


class _Search:
    """Judges the copies of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.transfer = context.transfer
        self.origins = context.transfer.one_of(Origins, context.transfer)
        self.copies = context.transfer.one_of(HostCopies, self.origins)
        self.device_work = DeviceWork(self.origins)
        self.threads = Threads(context.transfer, self.origins.guards)
        self.currents = context.transfer.one_of(Currents, context.transfer)
        self.seldom = context.transfer.one_of(Seldom, context.transfer)
        self._works: dict[tuple[Function, Judges], Site | None] = {}
        self._beside: dict[Site, Site | None] = {}
        self._entered: dict[Function, bool] = {}
        self._ends: dict[Function, list[Instruction]] = {}
        self._leading: dict[Function, frozenset[Site]] = {}

    def is_seldom(self, site: Site) -> bool:
        """Whether the loops of the program come to a copy in some rounds alone, and work on without it, or an error alone leads there."""
        return self.seldom.is_on_error(site) or self.seldom.is_seldom(site, partial(self._works_in_view, self._is_work))

    # --- the copy

    def holds_all(self, call: ModelledCall) -> bool:
        """Whether a call waits in a copy from a device to pageable memory, on the default stream."""
        if (array := array_of(call)) is not None:
            is_default = is_made_without(self.transfer, call.function, array)
        else:
            is_default = self._is_on_default(call.function, call.instruction, call.stream())
        if not is_default:
            return False
        if call.row.effect == "view" and call.switch("fetches")[1] is not True:
            return False
        if call.row.effect in ("read", "view"):
            source = call.one("of", call.receiver) if call.row.get("of") is None else next(iter(call.all("of")), None)
            return call.row.get("host_memory") == "pageable" and source is not None and self.is_on_device(call.function, source)
        for copied in self.transfer.of(call.function, call.instruction):
            if isinstance(copied, Copied) and copied.direction in ("d2h", "unknown<device", "host<device", "host<unknown"):
                is_there = self._is_cuda(call) or self.is_on_device(call.function, copied.source)
                return is_there and self._is_to_pageable(call)
        return False

    def _is_to_pageable(self, call: ModelledCall) -> bool:
        found = [copy.origin for copy in self.copies.of(call) if copy.direction == "d2h"]
        if not found and call.row.get("to") == "argument":
            if call.device_spaces() - {"host"}:  # some callers leave it on a device
                return False
            return call.row.get("host_memory") != "pinned-if-asynchronous" or not self.copies.is_asynchronous(call, ())
        if not found and self._is_to_variable(call):
            return True
        return bool(found) and all(origin.space == "host" and origin.pinning == "pageable" for origin in found)

    def _is_to_variable(self, call: ModelledCall) -> bool:
        """C++: whether a call copies into a variable of its function, by its address."""
        actions = self.transfer.of(call.function, call.instruction)
        targets = [action.target for action in actions if isinstance(action, Copied) and action.target >= 0]
        made = [call.function.definitions[target] for target in targets]
        return any(one is not None and one[0] == op.ADDRESS for one in made)

    def _is_cuda(self, call: ModelledCall) -> bool:
        return call.row.library in call.facts.models.marked("driver") | call.facts.models.marked("device-alone")

    def _is_on_default(self, function: Function, one: Instruction, stream: Stream) -> bool:
        if stream.kind != CURRENT:
            return stream.kind != NAMED
        current = self.currents.at(function, one)
        return current.kind != NAMED if current is not None else self._is_entered_on_default(function)

    def _is_entered_on_default(self, function: Function) -> bool:
        """Whether a function may be entered while no stream of its own is current: by a thread, from outside, by such a call."""
        found = self._entered.get(function)
        if found is None:
            self._entered[function] = False  # in a cycle, the others decide
            edges = [(*place, edge) for place in self.transfer.facts.call_places(function) for edge in self.transfer.edges(*place)]
            calls = [(caller, one, edge) for caller, one, edge in edges if edge.callee is function]
            found = self._entered[function] = not calls or any(
                edge.is_elsewhere or self._is_on_default(caller, one, Stream(CURRENT)) for caller, one, edge in calls
            )
        return found

    def is_on_device(self, function: Function, register: int) -> bool:
        """Whether a register holds memory that is on a CUDA device for sure: of no way it is on the host."""
        return _is_there(self.origins.of(function, register))

    # --- the work beside it

    def beside(self, site: Site) -> tuple[Step, ...]:
        """The work of another thread beside a call, with where the threads are started; empty where there is none."""
        function = site.function
        for started in self.threads.started:
            is_own = function in started.body
            work = self._beside_it(started) if is_own else self._of_another(started, site)
            if work is not None:
                begun = Step("another thread is started here", span_of(started.site))
                return begun, Step("work of another thread, blocked by the copy", span_of(work))
        return ()

    def _beside_it(self, started: Started) -> Site | None:
        if started.site not in self._beside:
            self._beside[started.site] = self._beside_own(started)
        return self._beside[started.site]

    def _beside_own(self, started: Started) -> Site | None:
        """What works on the device beside a thread that copies: threads of the same function, or the one that starts it."""
        if started.awaited and not started.several:
            return None
        if started.several and self.threads.chooses_device(started):
            return None
        if started.several and (work := self.work_of(started.body)) is not None and not self._is_brief(started.body):
            return work
        site = started.site
        for is_work in self._ways:
            found = self.threads.reached(site.function, site.instruction, partial(self._works_in_view, is_work), True)
            if found is not None:
                return self._inner(found, is_work)
        return self._of_siblings(started) or self._in_methods(site.function, started)

    def _of_siblings(self, started: Started) -> Site | None:
        """What another thread does that the same function starts, with nobody waiting for the end of either between."""
        for other in self.threads.started:
            pair = [started.site, other.site]
            if other is started or other.awaited or pair[0].function is not pair[1].function or started.body == other.body:
                continue
            if any(self._comes_behind(*each) for each in (pair, pair[::-1])) and (work := self.work_of(other.body)) is not None:
                return work
        return None

    def _comes_behind(self, first: Site, second: Site) -> bool:
        """Whether an instruction is reached behind another one, before somebody waits for the end of threads."""
        return self.threads.comes_behind(first.function, first.instruction, second.instruction)

    def _in_methods(self, function: Function, started: Started, depth: int = HIGHEST) -> Site | None:
        """What methods do of an object whose constructor has started a thread, or of one whose constructor has made such an object."""
        owner = function.owner
        if owner is None or not (self._outlives(started.site) and self._constructs(function)):
            return None
        methods = (each for group in owner.methods.values() for each in group if each is not function and each not in started.body)
        found = self.work_of(tuple(each for each in methods if not _is_constructor(each)))
        holders = dict.fromkeys(caller for caller, _ in self.transfer.callers(function)) if found is None and depth else ()
        above = (self._in_methods(caller, started, depth - 1) for caller in holders)
        return found or next((work for work in above if work is not None), None)

    def _constructs(self, function: Function) -> bool:
        """Whether a function is a constructor, or a method that the constructor of its class calls."""
        places = (site.function for site in lifted(self.transfer, Site(function, next(function.code.instructions()))))
        return any(_is_constructor(place) and place.owner is function.owner for place in places)

    def _of_another(self, started: Started, site: Site) -> Site | None:
        """What a thread does that was started before the copy, and that nobody has waited for."""
        if started.awaited or self.work_of(started.body) is None:
            return None
        for where in self.threads.begun(started):
            is_left = self._is_started_by_constructor(where.function, site.function) and self._outlives(where)
            if not (is_left or self._is_reached(where, site)):
                continue
            if where.function is site.function or not self._is_over(site):
                return self.work_of(started.body)
        return None

    def _is_reached(self, where: Site, site: Site) -> bool:
        """Whether a place, or a call that leads to it, is reached behind another one, in that one's function or in what calls that."""
        above = self._leading_to(where)
        if not self._may_lead(where, site.function):
            return False
        if site.function not in self._leading:
            own = Site(site.function, next(site.function.code.instructions()))
            self._leading[site.function] = frozenset(place for place in lifted(self.transfer, own) if place != own)
        leading = self._leading[site.function]
        if above.isdisjoint({site.function, *(place.function for place in leading)}):
            return False

        def stops(function: Function, one: Instruction) -> bool:
            return one is site.instruction or Site(function, one) in leading or (function.is_cpp and self._ends_inside(function, one))

        found = self.threads.reached(where.function, where.instruction, stops, True)
        return found is not None and (found.instruction is site.instruction or found in leading)

    @memoized
    def _leading_to(self, where: Site) -> frozenset[Function]:
        """The functions whose calls lead to a place."""
        return frozenset(place.function for place in lifted(self.transfer, where))

    @memoized
    def _may_lead(self, where: Site, function: Function) -> bool:
        """Whether one of the functions that lead to a place may lead to another function, by the names that calls have."""
        return any(one in self._leading_to(where) for one in named_above(self.transfer, function))

    def _ends_inside(self, function: Function, one: Instruction) -> bool:
        """Whether a function that an instruction enters, a destructor for instance, waits for the end of threads."""
        entered = (edge.callee for edge in self.transfer.edges(function, one)) if one[0] in CALLING else ()
        return any(self.threads.ends(callee, each) for callee in entered for each in callee.code.instructions())

    def _is_started_by_constructor(self, starter: Function, function: Function) -> bool:
        owner = starter.owner
        method = function.method
        if owner is None or method is None or method.owner is not owner or method is starter:
            return False
        return not _is_constructor(method) and self._constructs(starter)

    def _outlives(self, start: Site) -> bool:
        """Whether a thread may run on when the function that starts it returns."""
        return self.threads.reached(*start, lambda _, one: one[0] == op.RETURN, False) is not None

    def _is_over(self, site: Site) -> bool:
        """Whether the function of a copy has waited for the end of threads before."""
        function = site.function
        ends = self._ends.get(function)
        if ends is None:
            calls = (one for opcode in (op.CALL, op.INVOKE, op.EXIT, op.DESTROY) for one in function.by_opcode[opcode])
            ends = self._ends[function] = [one for one in calls if self.threads.ends(function, one)]
        return any(function.runs_before(one, site.instruction) for one in ends)

    @property
    def _ways(self) -> tuple[Judges, ...]:
        """How work is told: by what it says itself, which costs little; else by where its memory is."""
        return self._is_evident, self._is_work

    def work_of(self, body: tuple[Function, ...]) -> Site | None:
        """The first work on a device that functions do."""
        found = (self._first_work(body, is_work) for is_work in self._ways)
        return next((work for work in found if work is not None), None)

    def _first_work(self, body: Iterable[Function], is_work: Judges) -> Site | None:
        return next((work for function in body if (work := self._own_work(function, is_work)) is not None), None)

    def _is_brief(self, body: tuple[Function, ...]) -> bool:
        """Whether all work of a thread is a handful of operations that are over when the host has started them, uploads among them."""
        handful = Handful(self.device_work, ())
        works = [Site(function, one) for function in body for one in function.code.instructions() if self._is_work(function, one)]
        return all(handful.takes(each, each) or self._is_uploaded(each) for each in works)

    def _is_uploaded(self, site: Site) -> bool:
        """Whether a call uploads memory, and waits for that."""
        actions = self.transfer.of(*site)
        return any(isinstance(action, Copied) and action.direction == "h2d" and action.asynchronous is False for action in actions)

    def _own_work(self, function: Function, is_work: Judges) -> Site | None:
        asked = function, is_work
        if asked not in self._works:
            sites = (Site(function, one) for one in function.code.instructions())
            self._works[asked] = next((site for site in sites if is_work(function, site.instruction)), None)
        return self._works[asked]

    def _works_in_view(self, is_work: Judges, function: Function, one: Instruction) -> bool:
        return is_work(function, one) or self._inner(Site(function, one), is_work) != Site(function, one)

    def _inner(self, site: Site, is_work: Judges) -> Site:
        """The work that a call leads to, in the thread of its own."""
        if site.instruction[0] not in (op.CALL, op.INVOKE) or is_work(site.function, site.instruction):
            return site
        edges = self.transfer.edges(site.function, site.instruction)
        entered = [edge.callee for edge in edges if edge.is_followed and not (edge.is_guess or edge.is_elsewhere)]
        return (self._first_work(self.threads.closure(entered), is_work) if entered else None) or site

    def _is_evident(self, function: Function, one: Instruction) -> bool:
        """Work that says itself that it is issued to a device: a launch, a collective, an upload to a place that is written down."""
        if one[0] not in CALLING:
            return False
        if one[0] == op.LAUNCH or any(True for _ in launched(self.transfer.facts, self.transfer.libraries, function, one)):
            return True
        calls = (call.row for call in self.transfer.modelled(function, one))
        if any(row.effect in _WORK for row in calls):
            return True
        copied = (action for action in self.transfer.of(function, one) if isinstance(action, Copied) and action.direction == "h2d")
        return any(action.call.row is not None and action.call.row.get("to") in ("device", None) for action in copied)

    def _is_work(self, function: Function, one: Instruction) -> bool:
        """Work that is issued to a device for sure: a launch, an upload, an asynchronous copy on a stream that somebody made."""
        if one[0] == op.LAUNCH:
            return True
        if one[0] in (op.BINARY, op.INPLACE, op.UNARY):
            return any(self.is_on_device(function, register) for register in op.reads(one))
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        if any(True for _ in launched(self.transfer.facts, self.transfer.libraries, function, one)):
            return True
        return self._is_library_work(function, one)

    def _is_library_work(self, function: Function, one: Instruction) -> bool:
        for call in self.origins.calls(Known(function, op.NONE, ()), one):
            if call.row.effect in _WORK:
                return True
            if call.row.effect == "compute" and not call.row.get("host"):
                return call.is_of_arrays or any(self.is_on_device(function, register) for register in call.operands)
            if call.row.effect in ("copy", "transfer"):
                return self._is_moved(call)
        callee = self.transfer.values(function, one[3]) if one[0] == op.CALL else ()
        if any(isinstance(value, LibraryObject) and value.kind == "module" for value in callee):
            return any(self.is_on_device(function, register) for register in operands_of(function, one))
        return self._is_of_module(function, one)

    def _is_of_module(self, function: Function, one: Instruction) -> bool:
        """Whether what is called was moved to a device: of what lies there, one may call modules alone."""
        if function.is_cpp or one[0] not in (op.CALL, op.INVOKE):
            return False
        places = [(function, one[3])]
        if one[0] == op.INVOKE:
            owners = [value.definition for value in self.transfer.values(function, one[3]) if isinstance(value, Instance)]
            stores = (store for owner in owners for store in self.transfer.facts.hierarchy.stores(owner, function.text(one[4])))
            places = [(store.function, store.value) for store in stores if store.value >= 0]
        return any(_is_there(self.origins.of_parts(*place)) for place in places)

    def _is_moved(self, call: ModelledCall) -> bool:
        for copied in self.transfer.of(call.function, call.instruction):
            if not isinstance(copied, Copied):
                continue
            if copied.direction == "h2d" and call.row.get("to") in ("device", None):
                return True
            if copied.direction == "h2d":
                return self.is_on_device(call.function, call.result)
            on_own = not self._is_on_default(call.function, call.instruction, copied.stream)
            if on_own and copied.asynchronous and copied.direction != "h2h":
                return True
        return False

    def report(self, call: ModelledCall, trail: tuple[Step, ...]) -> Finding:
        """A copy as a finding."""
        operation = Copy(
            span_of(Site(call.function, call.instruction)),
            call.row.library,
            call.name,
            context=self.context.surroundings(call.function),
            direction=Direction.D2H,
            host_memory=Memory.PAGEABLE,
        )
        return RULE().report(operation, trail)


def _is_there(origins: list[Origin]) -> bool:
    """Whether memory is on a device for sure."""
    spaces = {origin.space for origin in origins}
    return "host" not in spaces and any(origin.space == "device" and origin.evidence != "asked" for origin in origins)


def _is_constructor(function: Function) -> bool:
    return function.owner is not None and function.code.name in ("__init__", function.owner.ir.name)
