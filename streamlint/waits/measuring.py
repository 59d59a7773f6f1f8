"""Code that measures or tests: waits are its purpose."""

from __future__ import annotations

import re

from streamlint.facts.call_graph import CallGraph
from streamlint.facts.functions import Function
from streamlint.facts.hot import Region
from streamlint.waits.wait import CACHE, DEVICE, Wait

_FILES = frozenset("test tests benchmark benchmarks bench profile profiler conftest".split())
_CLOCKS = frozenset({"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time"})
_FIGURES = frozenset({"elapsed_time", "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"})


def measures(graph: CallGraph, wait: Wait, region: Region) -> bool:
    """Whether the code around a wait tests or measures: by its file, or for a device-wide wait by a clock or a peak beside it."""
    chain = region.chain()
    if any(_FILES.intersection(re.split(r"[^a-z]+", one.function.unit.path.rpartition("/")[2].lower())) for one in chain):
        return True
    return wait.what in (DEVICE, CACHE) and any(_looks_at_figures(graph, one.function, one) for one in chain)


def _looks_at_figures(graph: CallGraph, function: Function, region: Region) -> bool:
    for call in graph.calls(function).libraries:
        head, _, last = call.name.rpartition(".")
        if (head == "time" and last in _CLOCKS) or last in _FIGURES or call.name.endswith("clock::now"):
            return True
        if call.row is not None and call.row.effect == "elapsed":
            return True
    return False
