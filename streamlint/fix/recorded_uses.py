"""``record_stream`` of the stream that uses a tensor, behind that use."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.findings import Finding, Fix, Span
from streamlint.fix.base import UNSAFE, fix
from streamlint.fix.python_code import PythonCode
from streamlint.fix.streams import streams_of


def recorded(finding: Finding, code: PythonCode, allocated: Span) -> Iterator[Fix]:
    """``record_stream`` for each use that the trail shows; ``allocated`` is where the tensor was made."""
    call = code.call_at(allocated)
    tensor = code.target_of(call)
    for step in finding.trail:
        if not step.message.startswith("used on another stream") or step.span.file != code.file:
            continue
        use = code.statement_at(step.span)
        if not code.sees(tensor, call, use):
            continue
        current = f"{code.called('torch', 'torch')}.cuda.current_stream()"
        for stream in [*streams_of(finding, code, use, "the other stream: "), current]:
            line = f"{tensor}.record_stream({stream})"
            places = [code.after(use, line), code.before(use, line)]
            for edit in reversed(places) if code.hands_over(use) else places:
                yield fix("record the stream", UNSAFE, edit)
