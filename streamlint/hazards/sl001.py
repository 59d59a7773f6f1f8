"""SL001: an asynchronous copy whose memory of the host is pageable, so that the host may wait."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from streamlint.checks.sl001_unpinned_non_blocking import UnpinnedNonBlocking
from streamlint.facts.code import objects
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Constant, External, Site
from streamlint.facts.repetition.trips import FEW_IN_ALL
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Copy, Direction, Evidence, Memory
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.keeping import read_from, stored_in
from streamlint.hazards.once import Once
from streamlint.hazards.repetition import Repetition
from streamlint.hazards.seldom import Seldom
from streamlint.hazards.stand_ins import StandIns
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.null_stream.empty_queues import EmptyQueues
from streamlint.ordering.races.early_reads import EarlyReads
from streamlint.ordering.streams.earlier import Earlier
from streamlint.ordering.streams.neighbours import Neighbours
from streamlint.ordering.streams.streams import sites_of
from streamlint.transfer.actions import NAMED, Copied
from streamlint.transfer.contexts import Known
from streamlint.transfer.gaps import has_gaps
from streamlint.transfer.host_copies import ASKED, COPYING, HostCopies, HostCopy, may_meet
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.origin import Origin
from streamlint.transfer.origins import Origins
from streamlint.transfer.registered import Registered
from streamlint.transfer.sizes import STAGED, LeastSizes, Size, Sizes
from streamlint.transfer.there_already import ThereAlready
from streamlint.waits.options import is_off
from streamlint.waits.questions import conditions
from streamlint.waits.ways import MOST_BRIEF

RULE = UnpinnedNonBlocking
_LONG_PASS = 64 << 20
"""Bytes of which a pass takes longer than the host needs to start it: at the 4.8 TB/s of an H200 (NVIDIA's data sheet) 28 us to read and
write them."""
_CALLS = (op.CALL, op.INVOKE)
_DEEPEST = 4
"""Computations that are gone back over for pinned memory."""


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    search = _Search(context)
    reported: set[tuple[object, ...]] = set()
    for call in context.transfer.sites(COPYING, "asynchronous", among=context.transfer.asked):
        if search.origins.contexts.truth(call, "asynchronous", ()) is False:
            continue
        for copy in search.stalling(search.copies.of(call)):
            finding = search.report(copy)
            if (finding.shown or context.options.evidence == "possible") and (key := (finding.span, finding.message)) not in reported:
                reported.add(key)
                yield finding


class _Search:
    """Judges the copies of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.rule = RULE()
        self.origins = context.transfer.one_of(Origins, context.transfer)
        self.guards = self.origins.guards
        self.sizes = context.transfer.one_of(Sizes, self.origins)
        self.least = context.transfer.one_of(LeastSizes, self.origins)
        self.copies = context.transfer.one_of(HostCopies, self.origins)
        self.earlier = Earlier(self.origins)
        self.neighbours = Neighbours(self.earlier)
        self.queues = EmptyQueues(self.earlier)
        self.repetition = Repetition(context.transfer)
        self.once = Once(context.transfer)
        self.registered = Registered(self.origins)
        self.there = ThereAlready(context.transfer)
        self.seldom = context.transfer.one_of(Seldom, context.transfer)
        self.stand_ins = StandIns(self.origins.contexts)
        self._read: dict[Site, frozenset[Site]] = {}

    def stalling(self, copies: Iterator[HostCopy]) -> Iterator[HostCopy]:
        """The asynchronous copies of pageable memory that the host may wait in."""
        for copy in copies:
            is_asked = self.copies.is_asynchronous(copy.call, copy.origin.known.context) and self._is_pageable(copy)
            size = self.sizes.of_copy(copy) if is_asked else None
            if size is not None and not size.is_small and not self.neighbours.is_waited_for(copy, _most_brief(size)):
                yield copy

    def _is_pageable(self, copy: HostCopy) -> bool:
        call, origin = copy.call, copy.origin
        said = self.guards.at(call.function, call.instruction, copy.host)
        if self.registered.holds(origin) or said & {"device", "pinned"} or self.guards.is_pinning_asked(call.function, copy.host):
            return False
        if self._is_pinned_here(copy) or self._is_converted(origin) or self._is_optional(copy):
            return False
        if self.there.is_there(call, copy.host, origin.passed):
            return False
        if origin.space == "unknown":
            return "host" in said and origin.how == "computed"
        if origin.pinning == "pinned":
            return origin.space == "host" and has_gaps(self.origins.contexts, origin.views, origin.known.context)
        return origin.space == "host" and origin.pinning == "pageable"

    def _is_pinned_here(self, copy: HostCopy) -> bool:
        """Whether the branch that copies asks for the flag that the memory, or its loader, was made to be pinned by."""
        function, site = copy.call.function, copy.origin.site
        if site is None or site.function is not function:
            return False
        asked = {register for register, holds in conditions(function, function.blocks[copy.call.instruction]) if holds}
        made = self.context.transfer.modelled(function, site.instruction) if asked else ()
        return any(register in asked for call in made for register in call.all("pin"))

    def _is_optional(self, copy: HostCopy) -> bool:
        """Whether an option that nobody in view turns on brings memory to the host, and the copy is made without that option, too."""
        site, call = copy.origin.site, copy.call
        if site is None or copy.direction != "h2d" or copy.origin.how != "fetched" or site.function.is_cpp:
            return False
        return self._is_off(site) and not any(map(self._is_off, (*copy.origin.passed, Site(call.function, call.instruction))))

    def _is_off(self, site: Site) -> bool:
        asked = conditions(site.function, site.function.blocks[site.instruction])
        return any(is_off(self.context.facts, site.function, condition, holds) for condition, holds in asked)

    def _is_converted(self, origin: Origin) -> bool:
        """Whether a test that found no tensor made one, and nobody in view shows that it is ever given an array."""
        site = origin.site
        if site is None or site.function.is_cpp:
            return False
        function = site.function
        asked = conditions(function, function.blocks[site.instruction])
        tested = {self.guards.asks_for_tensor(function, condition) for condition, holds in asked if not holds} - {op.NONE}
        steps = behind(function, [site.instruction[2]], lambda one: op.reads(one) if one[0] in _CALLS else ()) if tested else ()
        data = tested & {one[2] for one in steps}
        given = [self.origins.contexts.traced(Known(function, register, origin.known.context)) for register in data]
        held = [value for known in given for value in self.origins.contexts.values(known)]
        return bool(data) and not any(isinstance(value, objects.Memory) and "Tensor" not in value.type for value in held)

    # --- what it costs

    def _costs(self, copy: HostCopy) -> bool:
        """Whether a copy is shown to be large, to be repeated, or to wait for work."""
        call, origin, size = copy.call, copy.origin, self.sizes.of_copy(copy)
        if self._counts(copy, size):
            return False
        if copy.direction == "d2h" and self.neighbours.is_wanted(call, copy.host, origin.passed, self._reads(call), _most_brief(size)):
            return False
        if copy.direction == "h2d" and (self._is_idle(copy, size) or (size.bytes is None and self._is_open(copy))):
            return False
        sites = [*origin.passed, Site(call.function, call.instruction)]
        if self._is_set_aside(sites, origin, size):
            return False
        if size.bytes is not None or (self._is_repeated(sites) and not self._is_of_setup(sites)):
            return True
        if call.function.is_cpp and "Tensor" not in origin.type and not self.sizes.is_of_array(origin, call):
            return False
        return copy.direction == "d2h" or self._has_work_ahead(copy, sites)

    def _is_set_aside(self, sites: list[Site], origin: Origin, size: Size) -> bool:
        """Whether a copy runs once or seldom, or stands with its memory in a class for machines that need no pinned memory."""
        if any(self._is_once(site.function, site.instruction) for site in sites) or (size.bytes is None and self._is_of_few(sites)):
            return True
        made = [] if origin.site is None else [origin.site]
        if any(self.stand_ins.holds(site.function) for site in (*sites, *made)):
            return True
        return any(site.function.is_repeated(site.instruction) for site in sites) and self.seldom.is_seldom(sites[-1], self.earlier.is_work)

    def _is_of_few(self, sites: list[Site]) -> bool:
        """Whether a loop that has few rounds while the program runs leads to a copy."""
        trips = self.context.transfer.rounds.trips
        loops = [(one, loop) for one, instruction in sites for loop in islice(one.control.around(one.blocks[instruction]), 1)]
        return any(most is not None and most <= FEW_IN_ALL for most in (trips.in_all(*each) for each in loops))

    def _is_open(self, copy: HostCopy) -> bool:
        """Whether an upload of unknown size may find nothing to do: no work on its stream, or what is on the device already."""
        return self._is_on_new_stream(copy) or self._may_be_there(copy)

    def _may_be_there(self, copy: HostCopy) -> bool:
        """Whether what is uploaded may as well have been computed on a device, for all that the calls say which lead to the copy."""
        origin, given = copy.origin, self.origins.given(copy.origin)
        if any(each.how == "factory" and each.space == "host" and _is_of_same_function(each, origin) for each in given):
            return False  # a branch in view decides
        others = [each for each in self.origins.of(copy.call.function, copy.host) if each.how == "computed" and may_meet(each, origin)]
        return any(each.space == "device" for each in (*given, *others))

    @cached_property
    def _early_reads(self) -> EarlyReads:
        return EarlyReads(self.context.transfer)

    def _reads(self, call: ModelledCall) -> frozenset[Site]:
        """Where the host reads what a copy brings without a wait of its own: of pinned memory that would be a race."""
        site = Site(call.function, call.instruction)
        if site not in self._read:
            copies = [action for action in self.context.transfer.of(*site) if isinstance(action, Copied)]
            self._read[site] = frozenset(read.read for copied in copies for read in self._early_reads.of(call, copied))
        return self._read[site]

    def _counts(self, copy: HostCopy, size: Size) -> bool:
        """Whether whole numbers are copied, and nothing shows how many: they are indices or lengths."""
        call = copy.call
        if size.bytes is not None and size.bytes > STAGED:
            return False
        if size.counts:
            return True
        if call.row.effect != "transfer" or call.function.is_repeated(call.instruction):
            return False
        for register in call.all("dtype"):
            for value in self.origins.contexts.values(Known(call.function, register, ())):
                name = value.name if isinstance(value, External) else str(value.value) if isinstance(value, Constant) else ""
                if name.rpartition(".")[2] in call.function.known("index-type") and "." in name:
                    return True
        return False

    def _is_idle(self, copy: HostCopy, size: Size) -> bool:
        """Whether its stream is empty. A loader could pin its batches beside, so that staging them is not nothing beside brief work."""
        most = 0 if copy.origin.how == "loader" else _most_brief(size)
        return self.queues.holds(copy.call, copy.host, copy.evidence == ASKED, copy.origin.passed, most) or self._follows(copy)

    def _follows(self, copy: HostCopy) -> bool:
        """Whether it comes right behind another copy of what was made at the same place, say of a batch: the host has waited there.

        That copy may stand behind a branch: what is told of it is told once."""
        call, made = copy.call, copy.origin.site
        if call.function.is_cpp:
            return False

        def judge(other: Site, _: Site) -> bool | None:
            calls = [each for each in self.context.transfer.modelled(other.function, other.instruction) if each.row.effect in COPYING]
            for each in calls if other.instruction is not call.instruction else ():
                if any(earlier.origin.site == made for earlier in self.stalling(self.copies.of(each))):
                    return True
            return False if not calls and self.earlier.is_work(other.function, other.instruction) else None

        return self.earlier.all_paths(Site(call.function, call.instruction), judge, copy.origin.passed, crosses=lambda *_: None)

    def _is_on_new_stream(self, copy: HostCopy) -> bool:
        """Whether its stream was made by the function itself, and nothing but copies is put on a device behind that: none waits there."""
        call = copy.call
        made, is_all = sites_of(list(call.values(call.stream().register))) if call.stream().kind == NAMED else (frozenset(), False)

        def judge(other: Site, _: Site) -> bool | None:
            return True if other in made else False if self.earlier.is_work(other.function, other.instruction) else None

        return is_all and self.earlier.all_paths(Site(call.function, call.instruction), judge)

    def _is_once(self, function: Function, one: Instruction) -> bool:
        """Whether it stands behind a branch that is taken once, or asks for what is made behind it: what it makes is kept."""
        home = function.blocks[one]
        if self.once.is_first(function, one):
            return True
        asked = {place for condition, _ in conditions(function, home) for place in read_from(function, condition)}
        return bool(asked) and not asked.isdisjoint(stored_in(function, one[2]))

    def _is_of_setup(self, sites: list[Site]) -> bool:
        """Whether a constructor makes the copy, once for its object, and no loop makes one object after the other."""
        for place, site in enumerate(sites):
            if self.once.sets_up(site.function, _DEEPEST):
                return not self._is_repeated(sites[:place]) if place else True
        return False

    def _is_repeated(self, sites: list[Site]) -> bool:
        """Whether a loop repeats the copy: its own, one on the way to it, or one of callers."""
        if any(site.function.is_repeated(site.instruction) for site in sites):
            return True
        return any(True for _ in self.repetition.of(sites[0].function, sites[0].instruction))

    def _is_allocated(self, copy: HostCopy) -> bool:
        """Whether a call that has an argument for pinning allocates memory, and copies no data into it."""
        site = copy.origin.site
        made = self.context.transfer.modelled(site.function, site.instruction) if site is not None else ()
        return any(call.row.effect == "factory" and call.row.get("pin") is not None and call.one("data") is None for call in made)

    def _has_work_ahead(self, copy: HostCopy, sites: list[Site]) -> bool:
        """Whether an upload of unknown size that no loop in view repeats is shown to have something to wait for.

        That is work that was put on a device before it, or that of the layers or steps before, where a framework calls it in each of them.
        Else what is shown to be large counts, pinned memory that its maker took pains for, what somebody declares to be pageable, what a
        constructor made, where it is pinned once, and what is allocated empty or filled: that is pinned by a word, without another copy.
        """
        if copy.origin.how == "declared" or self.repetition.is_of_step(sites[0].function):
            return True
        if _is_of_constructor(copy) or self._is_allocated(copy):
            return True
        if self.earlier.has_work(sites[-1], copy.origin.passed):
            return True
        least = (self.least.of(copy.origin).bytes, self.least.given(copy.call, copy.origin.known.context))
        return any(each is not None and each > STAGED for each in least) or self._was_pinned(copy.origin)

    def _was_pinned(self, origin: Origin, depth: int = 0) -> bool:
        """Whether memory is a part of pinned memory that has gaps, or computed from all of pinned memory: the pinning is lost."""
        site = origin.site
        if origin.pinning == "pinned":
            return True
        if site is None or site.instruction[0] == op.ITEM or origin.how not in ("computed", "factory") or depth > _DEEPEST:
            return False
        return any(self._was_pinned(each, depth + 1) for each in self.origins.put_in(origin))

    # --- the finding

    def report(self, copy: HostCopy) -> Finding:
        """A copy as a finding."""
        call, origin = copy.call, copy.origin
        passed = origin.passed
        library = call.row.library
        operation = Copy(
            span_of(Site(call.function, call.instruction)),
            "python" if library == "numpy" else library,
            call.name,
            context=self.context.surroundings(call.function, passed),
            trail=tuple(self._made(copy)),
            direction=Direction.H2D if copy.direction == "h2d" else Direction.D2H,
            nbytes=self.sizes.of_copy(copy).bytes,
            evidence=Evidence.ASKED if copy.evidence == ASKED else Evidence.LITERAL,
            host_memory=Memory.PAGEABLE,
            host_gapped=origin.pinning == "pinned",
            host_passed_at=span_of(passed[0]) if passed else None,
        )
        return self.rule.report(operation, self._costs(copy))

    def _made(self, copy: HostCopy) -> Iterator[Step]:
        """Where the memory was made, unless that is the copy itself, and the calls that gave what it was made of."""
        site = copy.origin.site
        own = copy.call.function
        given = [entered for origin in self.origins.given(copy.origin) for entered in origin.known.context]
        for call in dict.fromkeys(call for function, call in given if function is own):
            yield Step("called with memory of the host here", span_of(call))
        if site is None:
            return
        words = {
            "declared": "declared to be in pageable memory here",
            "fetched": "allocated in pageable host memory by the copy itself",
            "loader": "the loader does not pin its batches",
            "pinned": "pinned here, and a part of it is copied",
            "module": "module parameters allocated in pageable host memory here",
        }
        memory = "pinned" if copy.origin.pinning == "pinned" else "pageable"
        yield Step(words.get(copy.origin.how, f"allocated in {memory} host memory here"), span_of(site))


def _most_brief(size: Size) -> int:
    """How many passes over tensors around a copy are no work: none where the copy is known to be so large that one takes a while."""
    return 0 if size.bytes is not None and size.bytes >= _LONG_PASS else MOST_BRIEF


def _is_of_constructor(copy: HostCopy) -> bool:
    """Whether the constructor of an object made the memory that another of its methods uploads."""
    made, home = copy.origin.site, copy.call.function
    return made is not None and made.function is not home and made.function.owner is not None and made.function.code.name == "__init__"


def _is_of_same_function(first: Origin, second: Origin) -> bool:
    return first.site is not None and second.site is not None and first.site.function is second.site.function
