"""SL035."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl035_wrong_device_context import WrongDeviceContext
from streamlint.findings import Finding
from streamlint.hazards.context import Context

RULE = WrongDeviceContext


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    yield from ()
