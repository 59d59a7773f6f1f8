"""Collects what findings rest on: asked of the facts of the program once all rules have found what they do, so that it changes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory, Object, Site
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.importers import importers
from streamlint.facts.graph.unused import Unused
from streamlint.findings import Finding, Span
from streamlint.findings.grounds import WAIT, WORK, Grounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.support.records import replace

_WORK = frozenset({"compute", "launch", "collective", "copy", "memset", "transfer", "record", "wait"})
_WAIT = frozenset({"read", "synchronize", "trim"})
_CALLING = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW})
_REASONS = ("literal", "asked")
MOST = 9
"""Counts are cut here: more says no more."""
MOST_UP = 40
"""Functions that are looked at on the way up to the body of a file."""


class GroundsFinder:
    """Finds the grounds of findings in one program."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.unused = self.facts.shared.one_of(Unused, self.facts.program, self.facts.hierarchy)
        self._places: dict[Unit, dict[tuple[int, int, int, int], Site]] = {}

    def grounded(self, findings: Iterable[Finding], rounds: dict[Span, str] | None = None) -> list[Finding]:
        """Findings with their grounds. ``rounds``: by place, what each round does that it holds up."""
        return [replace(one, grounds=self.of(one, (rounds or {}).get(one.span, ""))) for one in findings]

    def may_run(self, finding: Finding) -> bool:
        """Whether anything may call the function in which a finding is."""
        site = self._site(finding.span)
        return site is None or not self.unused.is_unused(site.function)

    def of(self, finding: Finding, does: str = "") -> Grounds | None:
        """The grounds of a finding; None where its place is no instruction that is known."""
        site = self._site(finding.span)
        if site is None:
            return None
        steps = [one for step in finding.trail if (one := self._site(step.span)) is not None and one != site]
        calls = [one for one in steps if self._enters(one)]
        reasons = {value.evidence for value in self._values(site) if isinstance(value, Memory)}
        return Grounds(
            is_cpp=site.function.is_cpp,
            calls=_cut(len(calls)),
            files=_cut(len({step.span.file for step in finding.trail} - {finding.span.file})),
            guards=_cut(sum(_guards(one) for one in (site, *calls))),
            loops=_cut(_loops(site)),
            unknown=_cut(sum(map(self._unknown, (site, *calls)))),
            beside=_cut(len(finding.trail) - len(calls)),
            is_reached=self._is_reached(calls[0].function if calls else site.function),
            is_made=self._is_made(site.function),
            is_imported=not site.function.is_cpp and any(True for _ in importers(site.function.unit)),
            before=self._nearest(site, site.function.ahead(site.instruction)),
            after=self._nearest(site, _behind(site)),
            device=next((reason for reason in _REASONS if reason in reasons), min(reasons, default="")),
            round=does,
        )

    # --- places

    def _site(self, span: Span) -> Site | None:
        unit = self.facts.program.units.get(span.file)
        if unit is None:
            return None
        if unit not in self._places:
            found: dict[tuple[int, int, int, int], Site] = {}
            self._places[unit] = found
            for function in unit.functions:
                for one in function.code.instructions():
                    known = found.get(at := function.code.at(one[1]))
                    if known is None or (known.instruction[0] not in _CALLING and one[0] in _CALLING):
                        found[at] = Site(function, one)
        return self._places[unit].get(span.at)

    def _enters(self, site: Site) -> bool:
        if site.instruction[0] not in _CALLING:
            return False
        return any(edge.is_followed for edge in self.graph.of_call(site.function, site.instruction).edges)

    def _values(self, site: Site) -> list[Object]:
        registers = [register for register in op.reads(site.instruction) if register >= 0]
        return [value for register in registers for value in self.facts.values(site.function, register).values]

    # --- who runs it

    def _is_reached(self, function: Function) -> bool:
        found = {function: None}
        waiting = [function]
        while waiting and len(found) < MOST_UP:
            one = waiting.pop(0)
            if one.code.kind == "module":
                return True
            around = [one.parent] if one.parent is not None and one.code.kind == "lambda" else []
            for caller in (*around, *(caller for caller, _ in self.facts.call_places(one))):
                if caller not in found:
                    found[caller] = None
                    waiting.append(caller)
        return False

    def _is_made(self, function: Function) -> bool:
        method = function.method
        owner = method.owner if method is not None else None
        if owner is None or function.is_cpp:
            return True
        return any(self.facts.construction_places(one) for one in self.facts.hierarchy.cone(owner) or [owner])

    # --- what stands beside it

    def _unknown(self, site: Site) -> int:
        """The unknown calls of the outermost loop around a place, else of its function."""
        within, homes = _around(site), site.function.blocks
        return sum(homes[one] in within for one in self.graph.calls(site.function).unknown)

    def _nearest(self, site: Site, others: Iterable[Instruction]) -> str:
        known = defaultdict(list)
        for call in self.graph.calls(site.function).libraries:
            known[call.instruction].append("" if call.row is None else call.row.effect)
        for one in others:
            effects = known.get(one, ())
            if any(effect in _WAIT for effect in effects):
                return WAIT
            if any(effect in _WORK for effect in effects):
                return WORK
        return ""


def _cut(count: int) -> int:
    return min(count, MOST)


def _behind(site: Site) -> Iterator[Instruction]:
    """The instructions that come after a place whichever way is taken, the next one first."""
    function, (block, index) = site.function, site.function.homes[site.instruction]
    yield from function.code.blocks[block][index + 1 :]
    while (block := function.control.post_dominators[block]) != NOBODY:
        yield from function.code.blocks[block]


def _guards(site: Site) -> int:
    """The branches that decide whether a place runs: without the ends of its loops, and what else would raise an exception."""
    function, graph = site.function, site.function.control
    home = function.blocks[site.instruction]
    around = [loop for loop in graph.loops if home in loop.body]
    within, found, waiting = _around(site), set[int](), [home]
    while waiting:
        for block, _ in graph.controlled_by[waiting.pop()]:
            ends = any(block in loop.body and any(block == last for last, _ in loop.exits) for loop in around)
            fails = any(after in function.raising for after in graph.successors[block])
            if block in within and block not in found and not ends and not fails:
                found.add(block)
                waiting.append(block)
    return len(found)


def _around(site: Site) -> frozenset[int]:
    """The blocks of the outermost loop around a place, else of its function."""
    graph, home = site.function.control, site.function.blocks[site.instruction]
    return next((loop.body for loop in graph.loops if home in loop.body), frozenset(graph.order))


def _loops(site: Site) -> int:
    graph = site.function.control
    inner = graph.innermost[site.function.blocks[site.instruction]]
    return graph.loops[inner].depth if inner != NOBODY else 0
