"""What the rules about default streams share: the work on streams, who chose them, what else is in flight, and how files are built."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.build_files import default_stream_of_python, per_thread_default_stream, per_thread_place, place_in_text
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.facts.files.extensions import Extensions
from streamlint.facts.files.program import Unit
from streamlint.findings import Span, Step
from streamlint.hazards.context import Context, span_of
from streamlint.models.vocabulary import Selector
from streamlint.ordering.null_stream.at_rest import AtRest
from streamlint.ordering.null_stream.streams_in_scope import StreamsInScope
from streamlint.ordering.places.places import Places
from streamlint.ordering.streams.choice import Choice
from streamlint.ordering.streams.choices import Choices
from streamlint.ordering.streams.concurrent_work import DEEPEST, ConcurrentWork, Event
from streamlint.ordering.streams.lanes import Lane
from streamlint.ordering.streams.streams import Currents
from streamlint.support.paths import display_path
from streamlint.transfer.launches import Launches


class Streams:
    """The streams of a program."""

    def __init__(self, context: Context, presumes: bool = False, deepest: int = DEEPEST) -> None:
        self.context = context
        self.transfer = context.transfer
        self.facts = context.facts
        self.launches = Launches(self.transfer, presumes)
        self.choices = Choices(self.transfer, self.transfer.one_of(Places, self.facts), Currents(self.transfer, guesses=True))
        self.beside = ConcurrentWork(self.transfer, self.launches, self.choices, deepest)
        self.in_scope = StreamsInScope(self.transfer, self.beside)
        self.at_rest = AtRest(self.transfer, self.beside)
        self.extensions = Extensions(self.facts.program)
        self._built: dict[Unit, bool | None] = {}
        self._blocking: dict[LibraryObject, bool | None] = {}

    def is_blocking(self, stream: LibraryObject) -> bool | None:
        """Whether a stream is ordered with the null stream; None where that is not known."""
        if stream.detail in ("blocking", "non-blocking", "pool"):
            return stream.detail == "blocking"
        if stream.site is None:
            return None
        if stream not in self._blocking:
            self._blocking[stream] = self.asked_blocking(stream.site)
        return self._blocking[stream]

    def asked_blocking(self, site: Site) -> bool | None:
        """Whether a call asks for a blocking stream."""
        for call in self.transfer.modelled(site.function, site.instruction):
            if call.row.effect == "stream":
                flags = call.row.get("flags")
                register = call.given(flags) if isinstance(flags, Selector) else None
                if register is not None:
                    return {"non-blocking": False, "blocking": True}.get(call.word(register))
                return call.switch("blocking")[1] if call.row.get("blocking") is not None else None
        return None

    def blocking(self, choice: Choice) -> bool | None:
        """The same of what was chosen: None where not all of it is alike."""
        answers = {self.is_blocking(one) for one in choice.made}
        return answers.pop() if len(answers) == 1 else None

    def work_blocking(self, event: Event) -> bool | None:
        """The same of the stream of a piece of work: of one that is given, what the program shows to be made for it."""
        if event.work is None or event.choice is None:
            return None
        if event.choice.made or event.work.operand < 0:
            return self.blocking(event.choice)
        held = self.facts.values(event.at.function, event.work.operand).values
        answers = {self.is_blocking(value) for value in held if isinstance(value, LibraryObject) and value.site is not None}
        return answers.pop() if len(answers) == 1 else None

    def per_thread(self, unit: Unit) -> bool | None:
        """Whether a file is built with per-thread default streams; None where nobody says."""
        if unit not in self._built:
            asked = self.context.options.default_stream
            self._built[unit] = asked == "per-thread" if asked != "auto" else self._built_per_thread(unit)
        return self._built[unit]

    def _built_per_thread(self, unit: Unit) -> bool | None:
        said = per_thread_default_stream(unit.path)
        if said or not unit.is_cpp:
            return said
        name = unit.path.rpartition("/")[2]
        for other in self.facts.program.units.values():
            text = other.source.text
            if not other.is_cpp and name in text and ("per-thread" in text or "PER_THREAD" in text):
                asked = default_stream_of_python(text, unit.path)
                if asked:
                    return True
                said = None if asked is None else said
        return said

    def per_thread_because(self, unit: Unit) -> tuple[Step, ...]:
        """Where a build file, or Python that compiles a source, asks for per-thread default streams."""
        path, *numbers = per_thread_place(unit.path).rsplit(":", 3)
        if len(numbers) == 3:
            row, start, end = map(int, numbers)
            return (Step("built with per-thread default streams here", Span(display_path(path), row, start, row, end)),)
        name = unit.path.rpartition("/")[2]
        for other in self.facts.program.units.values():
            text = other.source.text
            is_asking = not other.is_cpp and name in text and ("per-thread" in text or "PER_THREAD" in text)
            if is_asking and default_stream_of_python(text, unit.path):
                row, start, end = place_in_text(text)
                return (Step("built with per-thread default streams here", Span(other.path, row, start, row, end)),)
        return ()

    def if_legacy(self, unit: Unit) -> str:
        """What a message says of the default stream where no build file says which one it is."""
        return "" if self.per_thread(unit) is not None or not unit.is_cpp else " (with --default-stream=legacy)"

    def made_at(self, choice: Choice) -> Span | None:
        """Where a stream is made."""
        sites = sorted((one.site for one in choice.made if one.site is not None), key=lambda site: (site.function.unit.path, site.row))
        return span_of(sites[0]) if sites else None


def lexical(function: Function) -> list[Function]:
    """A function, and those that it stands in."""
    found = [function]
    while found[-1].parent is not None and found[-1].parent.code.kind in ("function", "lambda"):
        found.append(found[-1].parent)
    return found


def created(which: str, lane: Lane) -> Iterator[Step]:
    """Where a stream was made."""
    for site in sorted(lane.made, key=span_of)[:1]:
        yield Step(f"{which}: stream created here", span_of(site))
