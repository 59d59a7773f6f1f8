"""SL016: the macro for per-thread default streams is defined too late to have an effect."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl016_ptds_macro_ineffective import PtdsMacroIneffective
from streamlint.findings import Finding
from streamlint.hazards.context import Context
from streamlint.hazards.per_thread import MACRO, PerThread
from streamlint.hazards.streams import Streams

RULE = PtdsMacroIneffective


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    asked, streams = PerThread(context), Streams(context)
    for unit in context.facts.program.mentioning(MACRO):
        if unit.is_cpp and not streams.per_thread(unit):
            yield from (RULE().report(one.at, one.is_compiled, one.because, one.header) for one in asked.idle_macros(unit))
