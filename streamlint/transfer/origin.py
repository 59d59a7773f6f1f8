"""What walks for the origins of memory share: what an origin is, the way back to it, and what the layers ask one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory, Object, Site
from streamlint.facts.files.declarations import Declaration
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.batches import Batches
from streamlint.transfer.contexts import Contexts, Known
from streamlint.transfer.gaps import may_leave_gaps
from streamlint.transfer.guards import Guards
from streamlint.transfer.pinnings import Pinnings
from streamlint.transfer.transfer import Transfer
from streamlint.waits.entered import Context

DEEPEST_CALLS = 9
CHOSEN = "chosen"


class Origin(NamedTuple):
    """Memory and the place that made it. ``space`` and ``pinning`` as in `objects.Memory`. ``passed``: the calls by which callers passed
    it to the function that asks, the outermost first; ``views``: the instructions that took a part of it which may have gaps."""

    known: Known
    space: str
    pinning: str
    type: str
    evidence: str = "none"
    passed: tuple[Site, ...] = ()
    views: frozenset[Site] = frozenset()
    how: str = "factory"  # factory, alloc, computed, fetched, pinned, loader, kept, chosen, declared

    @property
    def site(self) -> Site | None:
        one = self.known.function.definitions[self.known.register] if self.known.register >= 0 else None
        return Site(self.known.function, one) if one is not None else None


def chosen(origin: Origin) -> Origin:
    """Memory that may be on the host, though nobody in view wants it there: it is neither pageable nor pinned."""
    return origin._replace(pinning="unknown", how=CHOSEN)


def as_declared(declaration: Declaration, origins: Iterable[Origin], way: Way) -> Iterator[Origin]:
    """Origins as the user declares them: what nothing tells of one, and where there is none, the declaration says."""
    said, declared, found = declaration.said, declaration.object, False
    kind = declared.type if isinstance(declared, Memory) else ""
    whole = Origin(way.known, said.space, said.pinning or "unknown", kind, "literal", way.passed, way.views, "declared")
    for origin in origins if said.space else ():
        found = True
        if origin.space == "unknown":
            yield whole._replace(type=origin.type or kind)
        elif origin.space == "host" == said.space and origin.pinning == "unknown" and said.pinning:
            yield origin._replace(pinning=said.pinning, how="declared")
        else:
            is_here = origin.how == "kept" and origin.known == way.known and (origin.space, origin.pinning) == (said.space, said.pinning)
            yield origin._replace(how="declared") if is_here else origin
    if not found and said.space:
        yield whole


class Way(NamedTuple):
    """A register on the way back, and what was passed on the way; ``is_viewed``: something took a part or another form of it."""

    known: Known
    passed: tuple[Site, ...] = ()
    views: frozenset[Site] = frozenset()
    is_viewed: bool = False

    def at(self, register: int, function: Function | None = None) -> Way:
        return self._replace(known=self.known._replace(register=register, function=function or self.known.function))


def appended(function: Function, register: int) -> Iterator[int]:
    """The registers that are put behind a list."""
    for use in function.uses[register]:
        if use[0] == op.APPEND and use[2] == register:
            yield use[3]
        elif use[0] == op.INVOKE and use[3] == register and function.text(use[4]) == "append" and len(use) == 7:
            yield use[6]


class Base:
    """Finds where memory comes from; the layers on top of it each know one kind of step."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.contexts = transfer.one_of(Contexts, transfer)
        self.guards = transfer.one_of(Guards, transfer)
        self.batches = Batches(transfer)
        self.pinnings = Pinnings(self.contexts)
        self.said: dict[tuple[Function, int], frozenset[str]] = {}
        self._gaps: dict[Site, bool] = {}

    def of(self, function: Function, register: int, context: Context = ()) -> list[Origin]:
        """The origins of what a register holds."""
        raise NotImplementedError

    def is_asked(self, known: Known, operands: Iterable[int]) -> bool:
        """Whether the origins of an operand are being looked for: what is computed from itself is where the loop began."""
        raise NotImplementedError

    def walk(self, way: Way) -> Iterator[Origin]:
        """The origins at the end of a way."""
        raise NotImplementedError

    def viewed(self, way: Way, one: Instruction) -> Way:
        """A way behind an instruction that takes a part or another form of memory; only what may leave gaps is kept, each once."""
        site = Site(way.known.function, one)
        if site not in self._gaps:
            self._gaps[site] = may_leave_gaps(self.contexts, site)
        return way._replace(is_viewed=True, views=way.views | {site} if self._gaps[site] else way.views)

    def held(self, known: Known, register: int) -> list[Object]:
        """What a register may hold."""
        return list(self.contexts.values(known._replace(register=register)))

    def holds_memory(self, known: Known, register: int) -> bool:
        return any(isinstance(value, Memory) for value in self.held(known, register))
