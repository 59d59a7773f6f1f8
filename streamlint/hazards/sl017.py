"""SL017: one part of a program uses per-thread default streams, and another the legacy default stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl017_ptds_legacy_mix import PtdsLegacyMix
from streamlint.findings import Finding
from streamlint.hazards.context import Context
from streamlint.hazards.per_thread import MACRO, PerThread
from streamlint.hazards.streams import Streams

RULE = PtdsLegacyMix


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    asked, streams, program = PerThread(context), Streams(context), context.facts.program
    spoken = [*program.mentioning(MACRO), *program.mentioning("cpp_extension")]
    for unit in dict.fromkeys(spoken):
        if not (unit.is_cpp and streams.per_thread(unit)):
            yield from (RULE().report(one.at, one.other, one.because) for one in asked.mixes(unit))
