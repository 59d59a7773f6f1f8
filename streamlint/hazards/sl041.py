"""SL041: a kernel that may begin before its predecessor has ended reads what that writes, and does not wait."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl041_dependent_launch_without_wait import DependentLaunchWithoutWait
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.streams import Streams
from streamlint.ordering.races.dependent_launches import HIGHEST, DependentLaunches

RULE = DependentLaunchWithoutWait


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule: without an early trigger ahead the race is rare, and reported as possible."""
    streams = Streams(context, deepest=HIGHEST)
    for found in DependentLaunches(context.transfer, streams.beside, streams.choices.places).find():
        if found.trigger is None and context.options.evidence != "possible":
            continue
        steps = [Step("predecessor writes it here", span_of(found.ahead.at))]
        if found.trigger is not None:
            steps.append(Step("predecessor lets the next kernel begin here", span_of(found.trigger)))
        steps.append(Step("launch may begin early by this attribute", span_of(found.allowed)))
        steps += [Step("read is in this call", span_of(site)) for site in found.read.calls]
        steps.append(Step("kernel reads it here", span_of(found.read.at)))
        at = found.launch.at
        around = context.surroundings(at.function, found.launch.via)
        late = span_of(found.read.late) if found.read.late is not None else None
        yield RULE().report(Operation(span_of(at), "cuda-runtime", found.name, context=around), tuple(steps), late)
