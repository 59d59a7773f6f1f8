"""SL027: a library works on memory of another library, on a stream that is not ordered with the other library's stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl027_foreign_library_stream import ForeignLibraryStream
from streamlint.findings import Finding, Step
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.foreign import LIBRARIES, ForeignWork
from streamlint.hazards.streams import Streams

RULE = ForeignLibraryStream


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    streams = Streams(context, presumes=True)
    for pair in ForeignWork(streams).find():
        made = streams.made_at(pair.other.choice) if pair.other.choice is not None else None
        if made is None and pair.foreign.choice is not None:
            made = streams.made_at(pair.foreign.choice)
        when = "earlier" if pair.is_behind else "later"
        other, foreign = pair.other.work, pair.foreign.work
        assert other is not None
        assert foreign is not None
        trail = [Step("stream created here", made)] if made is not None else []
        trail.append(Step(f"{when} access by {LIBRARIES[other.library]} here", span_of(pair.other.at)))
        trail += [Step("called from here", span_of(site)) for site in pair.foreign.via]
        yield RULE().told(span_of(pair.foreign.at), foreign.library, other.library, trail, pair.foreign.at.function.name)
