"""SL041."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl041_dependent_launch_without_wait import DependentLaunchWithoutWait
from streamlint.findings import Finding
from streamlint.hazards.context import Context

RULE = DependentLaunchWithoutWait


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    yield from ()
