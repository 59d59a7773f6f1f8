"""``streamlint debug hot``: whether a line runs in each round of a loop that trains, decodes or denoises, and why."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.commands.debug_facts import run
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.facts import Facts
from streamlint.facts.repetition.effects import MEANINGS, OF_ROUNDS, Effects
from streamlint.facts.repetition.hot import HotRegions, Region, site_of
from streamlint.ir.graph import NOBODY
from streamlint.models import RoundRow
from streamlint.support.errors import StreamlintError


def main(words: list[str]) -> int:
    """``debug hot FILE:LINE``: the loop or framework that makes a line hot, call by call, or the branch that makes it rare."""
    about = "Print whether a line runs in each round of a loop that trains, decodes or denoises, and what makes it so."
    return run("hot", about, "FILE:LINE", words, explain)


def explain(facts: Facts, unit: Unit, wanted: str) -> Iterator[str]:
    """What is known of a line, in lines."""
    if not wanted.isdigit():
        raise StreamlintError(f"{unit.path}:{wanted}: not a line")
    hot = HotRegions(Effects(CallGraph(facts)))
    hot.find()
    has_regions = False
    for function, block in _blocks(unit, int(wanted)):
        regions = hot.regions_of(function, block)
        has_regions = has_regions or bool(regions)
        for region in regions[:1]:
            yield f"{function.name}: hot"
            yield from (f"  {line}" for line in _chain(hot, region))
            yield from (f"  {line}" for line in _conditions(hot, region, block))
        if not regions and hot.regions.get(function):
            has_regions = True
            yield f"{function.name}: rare"
            yield from (f"  {line}" for line in _rare(hot, function, block))
    if not has_regions:
        yield "not hot: no loop that trains, decodes or denoises, and no step of a framework, runs this line"


def _blocks(unit: Unit, row: int) -> list[tuple[Function, int]]:
    """The blocks with instructions on a line, the innermost functions last."""
    found: dict[tuple[Function, int], None] = {}
    for function in unit.functions:
        for number, block in enumerate(function.code.blocks):
            if function.code.kind not in ("module", "class") and any(one[1] >= 0 and function.code.at(one[1])[0] == row for one in block):
                found.setdefault((function, number))
    return list(found)


def _chain(hot: HotRegions, region: Region) -> Iterator[str]:
    for one in region.chain():
        if one.loop is not None:
            yield f"{site_of(one)}: each round of this loop {MEANINGS[OF_ROUNDS[one.does]]}{_by(hot, one)}"
        elif isinstance(one.row, RoundRow):
            yield f"{one.function.name}: called in each round by a loop of {one.row.names[0]}"
        elif one.row is not None:
            yield f"{one.function.name}: called in each step of {one.row.loop} ({one.row.names[0]}.{one.function.code.name})"
        else:
            yield f"{site_of(one)}: calls {one.function.name}"


def _by(hot: HotRegions, region: Region) -> str:
    """The call by which a loop makes progress."""
    loops = hot.body(region.function).graph.loops
    progress = hot.progress(region.function).get(next(index for index, one in enumerate(loops) if one == region.loop))
    return f" ({Site(region.function, progress.instruction)})" if progress is not None else ""


def _conditions(hot: HotRegions, region: Region, block: int) -> Iterator[str]:
    """The branches that may keep a round from the block."""
    body = hot.body(region.function)
    heads = {loop.header for loop in body.graph.loops}
    seen: set[int] = set()
    waiting = [block]
    while waiting:
        for branch, _ in body.graph.controlled_by[waiting.pop()]:
            if branch in region.blocks and branch not in seen and branch not in heads:
                seen.add(branch)
                waiting.append(branch)
    for branch in sorted(seen):
        yield f"if the condition of {Site(region.function, region.function.code.blocks[branch][-1])} holds"


def _rare(hot: HotRegions, function: Function, block: int) -> Iterator[str]:
    body = hot.body(function)
    if block in body.lost:
        yield "behind an exception"
        return
    for region in hot.regions[function]:
        behind = [one for one in region.rare if one.block in region.blocks and body.graph.dominates(one.after, block)]
        for one in behind:
            yield f"{Site(function, function.code.blocks[one.block][-1])}: {one.why}"
        if behind:
            return
    if body.counted[block] == NOBODY:
        yield "outside of the loop"
