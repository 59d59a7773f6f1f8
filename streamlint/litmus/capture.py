"""The captures of one litmus run: what becomes of each call while streams are being captured."""

from __future__ import annotations

from collections.abc import Callable

from streamlint.cuda_model.capture import Capture, Mode, Status, null_stream_refused, unsafe_calls_refused
from streamlint.cuda_model.clocks import NULL, Clock
from streamlint.cuda_model.effects import Captured, Work
from streamlint.litmus.program import Call

DONE = ""


class Captures:
    """Asked before each call. ``take`` answers ``None`` (nothing to do with a capture), ``""`` (done) or CUDA's status."""

    def __init__(self, holds: Callable[[str], bool]) -> None:
        self._holds = holds
        self._active: list[Capture] = []
        self._events: dict[int, tuple[Capture, Clock]] = {}
        self._dead: set[int] = set()  # events last recorded in a capture that has ended

    def take(self, call: Call, events: dict[int, Clock]) -> str | None:
        if call.call.startswith("beginCapture"):
            return self._begin(call)
        if call.call == "endCapture":
            return self._end(call)
        capture = self.of(call.clock) if call.effect.stream else None
        if call.event is not None and self._is_dead(call.event) and not (capture is not None and capture.invalid):
            if call.effect.work is not Work.RECORD and self._holds("captured-event-dies-with-its-capture"):
                return _text(Status.INVALID_VALUE)
            self._dead.discard(call.event)
        if not self._active:
            return None
        if capture is not None:
            return self._inside(call, capture, events)
        return self._outside(call)

    def _is_dead(self, event: int) -> bool:
        """Whether the event was last recorded in a capture that has ended, or is lost."""
        return event in self._dead or (event in self._events and self._events[event][0].invalid)

    @property
    def active(self) -> bool:
        """Whether a capture goes on."""
        return bool(self._active)

    def of(self, stream: str) -> Capture | None:
        """The capture that a stream is part of."""
        return next((capture for capture in self._active if stream in capture.clocks.streams), None)

    def forbids_null(self, call: Call) -> bool:
        """Whether the call works on the null stream while that is refused."""
        return call.on_null and null_stream_refused(self._active) and self._holds("capture-refuses-the-null-stream")

    def _begin(self, call: Call) -> str:
        if call.clock == NULL:
            return _text(Status.UNSUPPORTED)
        if self.of(call.clock) is not None:
            return _text(Status.ILLEGAL)
        mode = Mode(call.call.partition(".")[2])
        self._active.append(Capture(call.clock, mode, call.thread, blocking=not call.clock.startswith("n")))
        return DONE

    def _end(self, call: Call) -> str:
        capture = self.of(call.clock)
        if capture is None:
            return _text(Status.ILLEGAL)
        if capture.origin != call.clock:
            return _text(Status.UNMATCHED)
        if capture.mode is not Mode.RELAXED and capture.thread != call.thread:
            capture.abandoned = True
            return _lost(capture, Status.WRONG_THREAD)
        self._active.remove(capture)
        self._dead |= {event for event, owner in self._events.items() if owner[0] is capture}
        self._events = {event: owner for event, owner in self._events.items() if owner[0] is not capture}
        if capture.invalid:
            return _text(Status.INVALIDATED)
        return DONE if capture.joined or not self._holds("capture-must-be-joined") else _text(Status.UNJOINED)

    def _inside(self, call: Call, capture: Capture, events: dict[int, Clock]) -> str:
        effect = call.effect
        if effect.captured is Captured.REFUSED and self._holds(_refusal(call)):
            return _lost(capture, Status.UNSUPPORTED)
        if capture.invalid:
            return _text(Status.INVALIDATED)
        if effect.captured is Captured.INVALID:
            return _text(Status.INVALID_VALUE)
        if effect.work is Work.WAIT:
            owner = self._events.get(call.event or 0)
            if owner is None and call.event in events and self._holds("capture-refuses-outside-waits"):
                return _lost(capture, Status.ISOLATION)
            if owner is not None and owner[0] is not capture:
                return _lost(capture, Status.MERGE)
            capture.clocks.wait(call.clock, owner[1] if owner else {})
        elif effect.work is Work.RECORD:
            self._events[call.event or 0] = (capture, capture.clocks.record(call.clock))
        else:
            capture.clocks.issue(call.clock)
        return DONE

    def _outside(self, call: Call) -> str | None:
        effect = call.effect
        owner = self._events.get(call.event) if call.event is not None else None
        if effect.work is Work.WAIT and owner is not None:
            return _joined(call, *owner)
        if self.forbids_null(call):
            for capture in self._active:
                capture.invalid = capture.invalid or capture.blocking
            return _text(Status.IMPLICIT)
        if owner is not None and effect.work is Work.NONE and self._holds("capture-refuses-synchronization"):
            return _lost(owner[0], Status.CAPTURED_EVENT)
        lost = self._lost_by(call)
        for capture in lost:
            capture.invalid = True
        if lost:
            return _text(Status.UNSUPPORTED)
        if effect.work is Work.RECORD:
            self._events.pop(call.event or 0, None)
        return None

    def _lost_by(self, call: Call) -> list[Capture]:
        """The captures that are lost because a call waits for the device, or is unsafe while they go on."""
        if call.call == "deviceSynchronize" and self._holds("capture-refuses-synchronization"):
            return self._active
        if call.effect.unsafe and self._holds("capture-refuses-unsafe-calls"):
            return [capture for capture in self._active if unsafe_calls_refused([capture], call.thread)]
        return []


def _joined(call: Call, capture: Capture, recorded: Clock) -> str:
    """What becomes of a wait for an event of a capture: its stream joins the capture, but the null stream cannot."""
    if call.on_null:
        return _lost(capture, Status.IMPLICIT)
    capture.clocks.wait(call.clock, recorded)
    capture.blocking = capture.blocking or not call.clock.startswith("n")
    return DONE


def _refusal(call: Call) -> str:
    return "capture-refuses-graph-launch" if call.call == "graphLaunch" else "capture-refuses-synchronization"


def _lost(capture: Capture, status: Status) -> str:
    capture.invalid = True
    return _text(status)


def _text(status: Status) -> str:
    return str(int(status))
