"""E: first calls that the "who is held" table lacks. Peer copies need a second GPU and are left out."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from questions import Part, Row, Say
from questions.held import BEHIND, FIRST, OTHER, SAME, Armed, Bench, CallbackGate, Holder, sentence
from streamlint.verify.lab import Lab

QUESTION = "empty_cache, cudaStreamDestroy, cudaGraphLaunch and callbacks that block, as first calls of the table of who is held"
PARTS = (Part("cupy"), Part("torch", lazy=True))
CONTROL = "no first call (control)"
KNOWN = "cudaFree (control)"
_RELAXED = 2
_CACHED = 64 << 20
_SECONDS = ("launch", "pinned copy", "cudaMalloc", "cudaMallocAsync", "event query", "null launch", "host function", "torch.empty")


def ask(part: str, say: Say, scratch: Path) -> None:
    """Every first call with every second one."""
    bench = Bench(Lab())
    holders = [*_controls(bench), *(_runtime(bench) if part == "cupy" else _torch(bench, say))]
    bench.warm(holders)
    for holder in holders:
        say(bench.measure(holder))


def _controls(bench: Bench) -> list[Holder]:
    lab, runtime = bench.lab, bench.lab.runtime

    def free() -> Armed:
        block = runtime.malloc(1 << 20)
        return Armed(lambda: runtime.free(block), lab.gate(bench.gated))

    return [Holder(CONTROL, OTHER, lambda: Armed(lambda: None, lab.gate(bench.gated))), Holder(KNOWN, OTHER, free)]


def _runtime(bench: Bench) -> list[Holder]:
    lab, runtime = bench.lab, bench.lab.runtime

    def destroy_idle() -> Armed:
        victim = bench.stream()
        lab.post(victim, BEHIND)
        return Armed(lambda: runtime.streamDestroy(victim), lab.gate(bench.gated))

    def destroy_pending() -> Armed:
        victim = bench.stream()
        return Armed(lambda: runtime.streamDestroy(victim), lab.gate(victim), behind=lambda: lab.post(victim, BEHIND))

    def function(gate: int) -> Callable[[], Armed]:
        call = lambda: runtime.launchHostFunc(bench.first, lab.raise_flag, FIRST)  # noqa: E731
        return lambda: Armed(call, lab.gate(gate), ran=lambda: lab.posted(FIRST))

    def blocks() -> Armed:
        gate = CallbackGate(lab, bench.first)
        return Armed(gate.launch, gate, ready=gate.entered.is_set)

    return [
        Holder("cudaStreamDestroy, idle stream", OTHER, destroy_idle),
        Holder("cudaStreamDestroy, work pending", SAME, destroy_pending),
        *_graphs(bench),
        Holder("cudaLaunchHostFunc", OTHER, function(bench.gated)),
        Holder("cudaLaunchHostFunc", SAME, function(bench.first)),
        Holder("callback that blocks", "nothing: the callback itself", blocks),
    ]


def _graphs(bench: Bench) -> list[Holder]:
    lab, runtime = bench.lab, bench.lab.runtime
    runtime.streamBeginCapture(bench.first, _RELAXED)
    lab.post(bench.first, FIRST)
    graph = runtime.streamEndCapture(bench.first)
    used = runtime.graphInstantiate(graph)

    def launch(executable: int, gate: int) -> Armed:
        return Armed(lambda: runtime.graphLaunch(executable, bench.first), lab.gate(gate), ran=lambda: lab.posted(FIRST))

    def fresh(gate: int) -> Callable[[], Armed]:
        def arm() -> Armed:
            executable = runtime.graphInstantiate(graph)
            bench.later(runtime.graphExecDestroy, executable)
            return launch(executable, gate)

        return arm

    return [
        Holder("cudaGraphLaunch", OTHER, lambda: launch(used, bench.gated)),
        Holder("cudaGraphLaunch", SAME, lambda: launch(used, bench.first)),
        Holder("cudaGraphLaunch, the executable's first", OTHER, fresh(bench.gated)),
        Holder("cudaGraphLaunch, the executable's first", SAME, fresh(bench.first)),
    ]


def _torch(bench: Bench, say: Say) -> list[Holder]:
    """Gates and most second calls are the lab's; the first call is torch's, and so is ``torch.empty``, for the allocator's mutex."""
    torch: Any = importlib.import_module("torch")
    lab = bench.lab
    lab.keep(torch.zeros(256, device="cuda"))  # its segment stays: torch.empty is then served without cudaMalloc
    blocks: list[Any] = []

    def empty() -> None:
        blocks.append(torch.empty(256, device="cuda"))
        bench.later(blocks.clear)

    bench.seconds["torch.empty"] = (empty, lambda: True)

    def cached(gate: int) -> Callable[[], Armed]:
        def arm() -> Armed:
            block = torch.empty(_CACHED, dtype=torch.uint8, device="cuda")
            del block
            return Armed(torch.cuda.empty_cache, lab.gate(gate))

        return arm

    def nothing() -> Armed:
        torch.cuda.empty_cache()
        return Armed(torch.cuda.empty_cache, lab.gate(bench.gated))

    cached(bench.gated)()
    before = torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    say({"case": "facts", "torch": str(torch.__version__), "released_mib": (before - torch.cuda.memory_reserved()) >> 20})
    return [
        Holder("empty_cache, 64 MiB cached", OTHER, cached(bench.gated)),
        Holder("empty_cache, 64 MiB cached", "the null stream", cached(0), frozenset({"null launch"})),
        Holder("empty_cache, nothing cached", OTHER, nothing),
    ]


def answer(rows: Sequence[Row]) -> str:
    """What each first call does, and whether the controls came out as known."""
    measured = [row for row in rows if "call" in row]
    if not measured:
        return "no answer: nothing was measured"
    quiet = all(row.get(name, "free") == "free" for row in measured if row["case"] == CONTROL for name in _SECONDS)
    known = all(row["launch"] == "held" for row in measured if row["case"] == KNOWN)
    sound = "" if quiet and known else "the controls did not come out as known, so do not trust this: "
    told = [sentence(row, _SECONDS) for row in measured if row["case"] not in (CONTROL, KNOWN)]
    return f"{sound}{'. '.join(told) or 'only the controls were measured'}."
