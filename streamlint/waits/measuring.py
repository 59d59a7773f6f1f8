"""Code that measures or tests: waits are its purpose."""

from __future__ import annotations

import re

from streamlint.facts.call_graph import CallGraph, LibraryCall
from streamlint.facts.functions import Function
from streamlint.facts.hot import Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.waits.wait import CACHE, DEVICE, Wait

_FILES = frozenset("test tests benchmark benchmarks bench profile profiler conftest".split())
_CLOCKS = frozenset({"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time"})
_FIGURES = frozenset({"elapsed_time", "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"})


def measures(graph: CallGraph, wait: Wait, region: Region) -> bool:
    """Whether the code around a wait tests or measures: by its file, or for a device-wide wait by a clock or a peak beside it."""
    chain = region.chain()
    if any(_FILES.intersection(re.split(r"[^a-z]+", one.function.unit.path.rpartition("/")[2].lower())) for one in chain):
        return True
    ways = zip(chain, (*(one.call for one in chain[1:]), wait.instruction), strict=True)  # the calls that lead to the wait, and that itself
    return wait.what in (DEVICE, CACHE) and any(at is not None and _is_measured(graph, one.function, at) for one, at in ways)


def is_stopped(graph: CallGraph, region: Region) -> bool:
    """Whether each round of a loop reads a clock twice: it measures what the round runs, and for a loop that steps nothing that is all.

    Who looks at gradients there may make the step by hand.
    """
    function, loop = region.function, region.loop
    if loop is None or any(function.text(one[4]) == "grad" for one in function.by_opcode[op.ATTR]):
        return False
    always = function.control.every_round(loop)
    clocks = {
        call.instruction for call in graph.calls(function).libraries if _is_clock(call) and function.blocks[call.instruction] in always
    }
    return len(clocks) > 1


def _is_measured(graph: CallGraph, function: Function, one: Instruction) -> bool:
    """Whether a clock or a peak of memory is read in each round of the innermost loop around an instruction, or else in its function."""
    block = function.blocks.get(one, NOBODY)
    loop = function.control.innermost[block] if block != NOBODY else NOBODY
    calls = (call for call in graph.calls(function).libraries if _is_figure(call))
    return any(loop == NOBODY or function.blocks[call.instruction] in function.control.loops[loop].body for call in calls)


def _is_clock(call: LibraryCall) -> bool:
    head, _, last = call.name.rpartition(".")
    return (head == "time" and last in _CLOCKS) or call.name.endswith("clock::now")


def _is_figure(call: LibraryCall) -> bool:
    if _is_clock(call) or call.name.rpartition(".")[2] in _FIGURES:
        return True
    return call.row is not None and call.row.effect == "elapsed"
