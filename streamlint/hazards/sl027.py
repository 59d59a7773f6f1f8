"""SL027: a library works on memory of another library, on a stream that is not ordered with the other library's stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl027_foreign_library_stream import ForeignLibraryStream
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import LibraryObject
from streamlint.findings import Finding, Step
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.foreign import DEEPEST, LIBRARIES, ForeignWork, Pair
from streamlint.hazards.streams import Streams
from streamlint.ir import opcodes as op
from streamlint.ordering.streams.choices import NULL
from streamlint.transfer.launches import OPENED

RULE = ForeignLibraryStream


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    streams = Streams(context, presumes=True, deepest=DEEPEST)
    search = ForeignWork(streams)
    for pair in search.find():
        made = streams.made_at(pair.other.choice) if pair.other.choice is not None else None
        if made is None and pair.foreign.choice is not None:
            made = streams.made_at(pair.foreign.choice)
        when = "earlier" if pair.is_behind else "later"
        other, foreign = pair.other.work, pair.foreign.work
        assert other is not None
        assert foreign is not None
        trail = [Step("stream created here", made)] if made is not None else []
        trail.append(Step(f"{when} access by {LIBRARIES[other.library]} here", span_of(pair.other.at)))
        if foreign.inner is not None:
            trail.append(Step("the work is here", span_of(foreign.inner)))
        trail += [Step("called from here", span_of(site)) for site in pair.foreign.via]
        mine = span_of(foreign.inner or pair.foreign.at)
        others = dict.fromkeys(span_of(event.at) for event in (pair.other, *search.partners(pair)))
        places = tuple(each for span in others for each in ((span, mine), (mine, span)))
        if foreign.library == OPENED:
            whose = _whose(streams, pair)
            yield RULE().report_opened(span_of(pair.foreign.at), whose, other.library, trail, pair.foreign.at.function.name, places)
            continue
        yield RULE().report(span_of(pair.foreign.at), foreign.library, other.library, trail, pair.foreign.at.function.name, places)


def _whose(streams: Streams, pair: Pair) -> str:
    """The library whose stream a function of an opened library gets; empty for the null stream."""
    choice, work = pair.foreign.choice, pair.foreign.work
    if choice is None or work is None or choice.kind == NULL:
        return ""
    function = pair.foreign.at.function
    for one in behind(function, [work.operand], op.reads):
        for value in streams.transfer.values(function, one[2]):
            if isinstance(value, LibraryObject) and value.kind == "stream":
                return value.type.partition(".")[0]
    return ""
