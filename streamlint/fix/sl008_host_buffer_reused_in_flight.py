"""SL008: wait for the copy before the host overwrites its buffer."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.findings import Finding, Fix
from streamlint.fix.code import Code
from streamlint.fix.waits import host_waits


def fixes(finding: Finding, code: Code) -> Iterator[Fix]:
    """An event behind the copy that the host waits for before it writes; in a loop, an event that is made before it."""
    copies = [step.span for step in finding.trail if step.message.startswith("copied asynchronously")]
    for copy in copies:
        yield from host_waits(finding, copy, code)
