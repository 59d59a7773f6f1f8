"""SL001: an asynchronous copy whose memory of the host is pageable, so that the host may wait."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl001_unpinned_non_blocking import UnpinnedNonBlocking
from streamlint.facts.objects import Site
from streamlint.findings import Finding, Step
from streamlint.hazards.context import Context, span_of
from streamlint.operations import Copy, Direction, Evidence, Memory
from streamlint.transfer.gaps import has_gaps
from streamlint.transfer.host_copies import ASKED, COPYING, HostCopies, HostCopy
from streamlint.transfer.origins import Origins
from streamlint.transfer.sizes import Size, Sizes
from streamlint.ordering.neighbours import Neighbours

RULE = UnpinnedNonBlocking


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    search = _Search(context)
    told: set[tuple[object, ...]] = set()
    for call in context.transfer.sites(COPYING):
        for finding in search.of(HostCopies(search.origins).of(call)):
            if (finding.shown or context.options.evidence == "possible") and (key := (finding.span, finding.message)) not in told:
                told.add(key)
                yield finding


class _Search:
    """Judges the copies of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.rule = RULE()
        self.origins = Origins(context.transfer)
        self.sizes = Sizes(self.origins)
        self.copies = HostCopies(self.origins)
        self.neighbours = Neighbours(context.transfer)

    def of(self, copies: Iterator[HostCopy]) -> Iterator[Finding]:
        for copy in copies:
            call, origin = copy.call, copy.origin
            if origin.space not in ("host", "unknown") or origin.pinning == "unknown" and origin.how != "computed":
                continue
            if not self.copies.is_asynchronous(call, origin.known.context):
                continue
            host = self._host_register(copy)
            said = self.origins.guards.at(call.function, call.instruction, host) if host >= 0 else frozenset()
            if said & {"device", "pinned"} or (origin.space == "unknown" and not ("host" in said and origin.how == "computed")):
                continue
            gapped = has_gaps(self.origins.contexts, origin)
            if origin.pinning == "pinned" and not gapped:
                continue
            size = self.sizes.of(origin)
            if size.is_small or self.neighbours.is_waited_for(call, origin.passed):
                continue
            yield self._told(copy, size, origin.pinning == "pinned")

    def _host_register(self, copy: HostCopy) -> int:
        call = copy.call
        if call.row.effect == "copy":
            found = call.one("src" if copy.direction == "h2d" else "dst")
        else:
            found = call.one("of", call.receiver) if copy.direction == "h2d" else None
        return -1 if found is None else found

    def _told(self, copy: HostCopy, size: Size, gapped: bool) -> Finding:
        call, origin = copy.call, copy.origin
        site = Site(call.function, call.instruction)
        passed = origin.passed
        operation = Copy(
            span_of(site),
            call.row.library if call.row.library != "numpy" else "python",
            call.name,
            context=self.context.surroundings(call.function, passed),
            trail=tuple(self._made(copy)),
            direction=Direction.H2D if copy.direction == "h2d" else Direction.D2H,
            asked_async=True,
            nbytes=size.bytes,
            evidence=Evidence.ASKED if copy.evidence == ASKED else Evidence.LITERAL,
            host_memory=Memory.PAGEABLE,
            host_gapped=gapped,
            host_passed_at=span_of(passed[0]) if passed else None,
        )
        return self.rule.told(operation, not size.counts)

    def _made(self, copy: HostCopy) -> Iterator[Step]:
        """Where the memory was made, unless that is the copy itself."""
        site = copy.origin.site
        if site is None or site.instruction is copy.call.instruction:
            return
        words = {"loader": "the loader does not pin its batches", "pinned": "pinned here, and a part of it is copied"}
        yield Step(words.get(copy.origin.how, "allocated in pageable host memory here"), span_of(site))
