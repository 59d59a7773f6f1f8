"""C: how long the first launch of a kernel takes that was not loaded yet, and who is held meanwhile."""

from __future__ import annotations

import ctypes
import gc
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from questions import Part, Row, Say, find, median
from questions.held import FIRST, OTHER, SAME, Armed, Bench, Holder, sentence
from questions.threads import Looper
from streamlint.verify.lab import Lab, LabError

QUESTION = "the first launch of a kernel under lazy loading: how long, and who is held"
PARTS = (Part("lazy", lazy=True), Part("eager"))
GATES_MS = (20, 60, 120)
_IDLE_RUNS, _WARM_RUNS, _GATE_RUNS = 20, 3, 5
_NEIGHBOURS = {"small": 100, "large": 30}
_SECONDS = ("launch", "pinned copy", "cudaMalloc", "cudaMallocAsync", "event query", "null launch", "host function")
# `table` makes the driver allocate 8 MiB of device memory when it loads the kernel.
_SOURCES = {
    "small": r'extern "C" __global__ void first(volatile int* flag) { *flag = 1; __threadfence_system(); }',
    "large": r"""__device__ unsigned char table[8 << 20];
extern "C" __global__ void first(volatile int* flag) { *flag = 1 + table[blockIdx.x]; __threadfence_system(); }""",
}
_NOTHING = r'extern "C" __global__ void nothing() {}'


class Loader:
    """Libraries through libcuda, a kernel each: CuPy has no calls for them. Each is a fresh one, not loaded yet where that is lazy."""

    def __init__(self, cupy: Any) -> None:
        nvrtc: Any = importlib.import_module("cupy_backends.cuda.libs.nvrtc")
        self._images: dict[str, bytes] = {}
        for name, source in _SOURCES.items():
            program = nvrtc.createProgram(source, "first.cu", [], [])
            nvrtc.compileProgram(program, (f"-arch=sm_{cupy.cuda.Device().compute_capability}",))
            self._images[name] = nvrtc.getCUBIN(program)
        cuda = ctypes.CDLL("libcuda.so.1")
        pointer, number = ctypes.c_void_p, ctypes.c_uint
        cuda.cuLibraryLoadData.argtypes = [pointer, ctypes.c_char_p, pointer, pointer, number, pointer, pointer, number]
        cuda.cuLibraryGetKernel.argtypes = [pointer, pointer, ctypes.c_char_p]
        cuda.cuLaunchKernel.argtypes = [pointer, *[number] * 7, pointer, pointer, pointer]
        self._cuda = cuda

    def library(self, image: str) -> int:
        """``cuLibraryLoadData``."""
        library = ctypes.c_void_p()
        _check(self._cuda.cuLibraryLoadData(ctypes.byref(library), self._images[image], None, None, 0, None, None, 0))
        return int(library.value or 0)

    def kernel(self, library: int) -> int:
        """``cuLibraryGetKernel``."""
        kernel = ctypes.c_void_p()
        _check(self._cuda.cuLibraryGetKernel(ctypes.byref(kernel), library, b"first"))
        return int(kernel.value or 0)

    def first(self, library: int, flag: int, stream: int) -> None:
        """Get the kernel and launch it, as one call: whichever of the two loads it is in the time."""
        self.launch(self.kernel(library), flag, stream)

    def launch(self, kernel: int, flag: int, stream: int) -> None:
        """``cuLaunchKernel``; ``flag`` is the address that the kernel writes."""
        value = ctypes.c_uint64(flag)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(value))
        _check(self._cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None))


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"libcuda answered {status}")


def ask(part: str, say: Say, scratch: Path) -> None:
    """Idle, behind gates of three lengths, beside a second thread, and next to a thread that launches all the time."""
    bench = Bench(Lab())
    loader = Loader(bench.lab.cupy)
    for image in _SOURCES:
        say(_idle(bench, loader, image))
    for image in _SOURCES:
        say(_behind(bench, loader, image))
    holders = _holders(bench, loader)
    bench.warm(holders)
    for holder in holders:
        say(bench.measure(holder))
    gc.disable()
    sys.setswitchinterval(1e-5)
    for row in _neighbour(bench, loader):
        say(row)


def _timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    begin = time.perf_counter()
    result = call(*arguments)
    return result, (time.perf_counter() - begin) * 1e6


def _idle(bench: Bench, loader: Loader, image: str) -> Row:
    flag = bench.lab.address(FIRST)
    times: dict[str, list[float]] = {"load_us": [], "kernel_us": [], "first_us": [], "again_us": []}
    for run in range(_WARM_RUNS + _IDLE_RUNS):
        bench.lab.synchronize()
        library, load = _timed(loader.library, image)
        bench.lab.synchronize()
        kernel, handle = _timed(loader.kernel, library)
        _, first = _timed(loader.launch, kernel, flag, bench.first)
        bench.lab.synchronize()
        _, again = _timed(loader.launch, kernel, flag, bench.first)
        if run >= _WARM_RUNS:
            for name, value in zip(times, (load, handle, first, again), strict=True):
                times[name].append(value)
    bench.lab.synchronize()
    row: Row = {"case": "idle device", "image": image, "runs": _IDLE_RUNS, **{name: median(values, 1) for name, values in times.items()}}
    return {**row, "first_max_us": round(max(times["first_us"]), 1)}


def _behind(bench: Bench, loader: Loader, image: str) -> Row:
    """Host time of the first launch on a stream of its own, while a gate on another one opens after some time."""
    lab, points, problems = bench.lab, [], []
    for _ in range(_GATE_RUNS):
        for length in GATES_MS:
            library = loader.library(image)
            lab.synchronize()
            try:
                with lab.gate(bench.gated) as gate:
                    gate.open_after(length)
                    _, took = _timed(loader.first, library, lab.address(FIRST), bench.first)
                    waited = gate.opened_at is not None
                    gate.await_open()
                points.append((length, took / 1e3, waited))
            except LabError as problem:
                problems.append(str(problem))
    row: Row = {"case": "behind a gate elsewhere", "image": image}
    if problems:
        row["void"] = problems
    if len({length for length, _, _ in points}) < len(GATES_MS):
        return {**row, "failure": "too few runs with a number"}
    row |= {f"gate_{length}_ms": median(took for gate, took, _ in points if gate == length) for length in GATES_MS}
    line = statistics.linear_regression([float(gate) for gate, _, _ in points], [took for _, took, _ in points])
    return {**row, "slope": round(line.slope, 3), "returned_after_opening": f"{sum(waited for *_, waited in points)} of {len(points)}"}


def _holders(bench: Bench, loader: Loader) -> list[Holder]:
    lab = bench.lab

    def launches(image: str, stream: int, gate: int) -> Callable[[], Armed]:
        def arm() -> Armed:
            library = loader.library(image)
            call = lambda: loader.first(library, lab.address(FIRST), stream)  # noqa: E731
            return Armed(call, lab.gate(gate), ran=lambda: lab.posted(FIRST))

        return arm

    def loads(image: str) -> Callable[[], Armed]:
        return lambda: Armed(lambda: loader.library(image), lab.gate(bench.gated))

    found = [Holder("no first call (control)", OTHER, lambda: Armed(lambda: None, lab.gate(bench.gated)))]
    for image in _SOURCES:
        found += [
            Holder(f"first launch, {image}", OTHER, launches(image, bench.first, bench.gated)),
            Holder(f"first launch, {image}", SAME, launches(image, bench.first, bench.first)),
            Holder(f"cuLibraryLoadData, {image}", OTHER, loads(image)),
        ]
    return [*found, Holder("first launch on the null stream, small", OTHER, launches("small", 0, bench.gated))]


def _neighbour(bench: Bench, loader: Loader) -> list[Row]:
    """A thread that launches a loaded kernel all the time on its own stream, while this one makes first launches on an idle device."""
    lab = bench.lab
    own = lab.stream()
    nothing = lab.keep(lab.cupy.RawModule(code=_NOTHING)).get_function("nothing")

    def call() -> None:
        nothing((1,), (1,), (), stream=own)

    call()
    rows = []
    for image, count in {"none": 0, **_NEIGHBOURS}.items():
        libraries = [loader.library(image) for _ in range(count)]
        lab.synchronize()
        with Looper(lab.cupy, call) as looper:
            begin, before = time.perf_counter(), looper.count
            for library in libraries:
                loader.first(library, lab.address(FIRST), bench.first)
            if not libraries:
                time.sleep(0.05)
            end, calls = time.perf_counter(), looper.count - before
            time.sleep(0.005)
        lab.synchronize()
        seen = {key: round(value, 3) for key, value in looper.between(begin, end, calls).items()}
        rows.append({"case": "a thread that launches meanwhile", "image": image, "first_launches": count, **seen})
    return rows


def answer(rows: Sequence[Row]) -> str:
    """Times, slope and who was held, for each way of loading."""
    parts = [_answer_for([row for row in rows if row.get("part") == part.name], part.name.upper()) for part in PARTS]
    return " ".join(parts)


def _answer_for(rows: Sequence[Row], mode: str) -> str:
    texts = []
    for image in _SOURCES:
        idle, behind = find(rows, case="idle device", image=image), find(rows, case="behind a gate elsewhere", image=image)
        if idle:
            texts.append(f"the first launch ({image}) takes {idle['first_us']} us on an idle device, the second {idle['again_us']} us")
        if "slope" in behind:
            lengths = ", ".join(f"{behind[f'gate_{length}_ms']} ms behind {length} ms" for length in GATES_MS)
            texts.append(f"{lengths} (slope {behind['slope']}, {behind['returned_after_opening']} returned after the gate was open)")
    texts += [sentence(row, _SECONDS) for row in rows if "call" in row and "control" not in row["case"]]
    beside = find(rows, case="a thread that launches meanwhile", image="small")
    alone = find(rows, case="a thread that launches meanwhile", image="none")
    if beside and alone:
        longest = f"{beside['longest_ms']} ms, without them {alone['longest_ms']} ms"
        texts.append(f"beside first launches another thread's longest launch was {longest}")
    return f"{mode}: {'; '.join(texts) or 'nothing was measured'}."
