"""``streamlint debug effects``: what functions do to devices, streams and threads, and through which calls."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.commands.debug_facts import functions_named, run
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.facts import Facts
from streamlint.facts.repetition.effects import MEANINGS, Effects


def main(words: list[str]) -> int:
    """``debug effects FILE:FUNCTION``: the effects of a function, each with the calls that bring it."""
    return run("effects", "Print what a function does to devices, and through which calls.", "FILE:FUNCTION", words, _effects)


def _effects(facts: Facts, unit: Unit, wanted: str) -> Iterator[str]:
    effects = Effects(CallGraph(facts))
    for function in functions_named(unit, wanted):
        yield f"{function.name}:"
        found = effects.of(function)
        for effect, meaning in MEANINGS.items():
            if effect & found:
                steps = (f"{name} ({Site(inner, one)})" for inner, one, name in effects.chain(function, effect))
                yield f"  {meaning}: {', '.join(steps)}"
