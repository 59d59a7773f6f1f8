"""SL035: work on the current device of a thread, which is another one than that of its data."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl035_wrong_device_context import WrongDeviceContext
from streamlint.facts.code.objects import Site
from streamlint.findings import Finding
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.threads.chosen_devices import ChosenDevices
from streamlint.ordering.threads.thread_devices import ThreadDevices
from streamlint.ordering.threads.unguarded_launches import UnguardedLaunches

RULE = WrongDeviceContext


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    devices = context.transfer.one_of(ChosenDevices, context.transfer)
    for found in ThreadDevices(context.transfer, devices).find():
        around = context.surroundings(found.work.function, found.calls)
        work = Operation(span_of(found.work), found.library, found.name, context=around)
        yield RULE().report(work, span_of(found.start), span_of(found.chosen))
    launches = UnguardedLaunches(context.transfer, devices)
    for each in launches.streams():
        at = Site(each.obtained.function, each.obtained.instruction)
        asked = Operation(span_of(at), each.obtained.row.library, each.obtained.name, context=context.surroundings(at.function))
        yield RULE().report_stream(asked, span_of(each.made), span_of(each.launch))
    for one in launches.find():
        launch = Operation(span_of(one.launch), "cuda-runtime", one.name, context=context.surroundings(one.launch.function))
        if one.made is not None:
            yield RULE().report_extension(launch, span_of(one.made), tuple(span_of(site) for site in one.calls))
        elif one.guard is not None:
            yield RULE().report_sibling(launch, span_of(one.guard))
