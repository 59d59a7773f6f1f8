"""How near `streamlint trace` comes with its estimate of a gain: programs timed with a wait and repaired, the first also recorded.

    python benchmarks/trace_gains.py measure FOLDER [SET]     (needs a GPU, PyTorch and CuPy; three minutes)
    python benchmarks/trace_gains.py loads FOLDER            (what recording a thing costs: loops, recorded and not, in turns)
    python benchmarks/trace_gains.py tell FOLDER ... > benchmarks/trace_gains.json

SET is ``loops``, the functions of `trace_gains_programs.py`, or ``repairs``, the programs of the folder `trace_repairs`, whose lines with
``# STALL`` are left out in the repaired version, for which those with ``# REPAIR`` stand.

Of ``loops``, plain times, the profiler of PyTorch (with stacks) and the recorder of the project have a process of their own each, since
CUPTI serves one at a time. They take turns program by program: the speed of a host changes within minutes. It differs from process to
process, too, so each program of ``repairs`` is timed and recorded, by the recorder alone, in one process of its own. ``loads`` are loops of
one thing (launches, operators, functions): for PyTorch's profiler they are timed beside ``loops``, for the recorder by ``loads``, in turns.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LOOPS, REPAIRS = HERE / "trace_gains_programs.py", HERE / "trace_repairs"
ROUNDS = 3  # before the recordings, and as many behind them
PAIRS, RECORDINGS, RUNS, WARM = 4, 2, 3, 4  # of `repairs`: pairs around each recording, recordings, runs in one, and pairs before all
TURNS = 12  # of `loads`
HELD_BACK = 10  # the first ten programs were looked at while the estimate was made, the others only in the end
SECONDS = 180.0


def key(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


def programs(chosen: str) -> dict[str, tuple[Callable[[], Any], Callable[..., Any]]]:
    """By name: what makes the data, and what runs some steps with it, repaired or not."""
    if chosen == "loops":
        import trace_gains_programs

        return trace_gains_programs.PROGRAMS
    return {path.stem: both_of(path) for path in sorted(REPAIRS.glob("*.py"))}


def file_of(chosen: str, name: str) -> Path:
    return LOOPS if chosen == "loops" else REPAIRS / f"{name}.py"


def stalls_in(path: Path) -> set[int]:
    return {number for number, row in enumerate(path.read_text().splitlines(), 1) if "# STALL" in row}


def both_of(path: Path) -> tuple[Callable[[], Any], Callable[..., Any]]:
    """A program of the folder, and its repaired version with its own data, as one."""
    texts = path.read_text(), repaired_text(path.read_text())
    names: list[dict[str, Any]] = [{"__name__": path.stem}, {"__name__": f"{path.stem}_repaired"}]

    def make() -> list[Any]:
        for text, mine, file in zip(texts, names, (str(path), f"{path}.repaired"), strict=True):
            if "run" not in mine:
                exec(compile(text, file, "exec"), mine)
        return [mine["make"]() for mine in names]

    def run(made: list[Any], repaired: bool) -> object:
        return names[repaired]["run"](made[repaired])

    return make, run


def repaired_text(text: str) -> str:
    rows = ["" if "# STALL" in row else row.replace("# REPAIR ", "") for row in text.split("\n")]
    return "\n".join(rows)


def timed(run: Callable[[], object]) -> float:
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1000


# Loops of one thing -----------------------------------------------------------------------------------------------------------------


def loads() -> dict[str, Callable[[], float]]:
    """Loops; each returns microseconds a round, of the host but for the last, which gives those of the device."""
    import cupy
    import torch

    small, host, pinned = torch.zeros(16, device="cuda"), torch.zeros(1), torch.zeros(16).pin_memory()
    kernel = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    stream, identity, pair = torch.cuda.current_stream(), torch.nn.Identity(), [small, small.clone()]
    weight = torch.zeros(16, device="cuda", requires_grad=True)

    def function() -> None:
        pass

    def backward() -> None:
        (weight * 2 * 2 * 2 * 2).sum().backward()

    def loop(body: Callable[[], object], rounds: int = 300, times: int = 4) -> Callable[[], float]:
        def run() -> float:
            found = []
            for _ in range(times):
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(rounds):
                    body()
                found.append((time.perf_counter() - start) * 1e6 / rounds)
            torch.cuda.synchronize()
            return statistics.median(found)

        return run

    def in_thread(run: Callable[[], float]) -> Callable[[], float]:
        def started() -> float:
            found: list[float] = []
            thread = threading.Thread(target=lambda: found.append(run()))
            thread.start()
            thread.join()
            return found[0]

        return started

    def device() -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(60_000_000)
        first.record()
        for _ in range(600):
            small.zero_()
        last.record()
        torch.cuda.synchronize()
        return first.elapsed_time(last) * 1000 / 600

    return {
        "launch of the driver": loop(lambda: kernel((1,), (1,), ())),
        "zero_ on the GPU": loop(small.zero_),
        "add on the GPU": loop(lambda: small + 1),
        "copy_ from pinned": loop(lambda: small.copy_(pinned, non_blocking=True)),
        "_foreach_add_": loop(lambda: torch._foreach_add_(pair, 1.0)),
        "zero_ on the host": loop(host.zero_, 2000),
        "add on the host": loop(lambda: host + 1, 2000),
        "function": loop(function, 5000),
        "builtin": loop(lambda: len(pair), 5000),
        "module": loop(lambda: identity(host), 2000),
        "backward": loop(backward, 100),
        "add on the GPU, in a thread": in_thread(loop(lambda: small + 1)),
        "synchronize": loop(stream.synchronize, 1000),
        "item": loop(lambda: small[0].item(), 200),
        "of the device: zero_": device,
    }


def loaded(around: Callable[[], contextlib.AbstractContextManager[Any]]) -> dict[str, float]:
    found = {}
    for name, run in loads().items():
        run()
        with around():
            found[name] = round(run(), 3)
    return found


def recorded_loads(folder: Path) -> None:
    """Time the loads with the recorder and without, in turns, and say by how many microseconds a round is longer: median and quartiles."""
    import streamlint

    folder.mkdir(parents=True, exist_ok=True)
    plain: dict[str, list[float]] = {}
    longer: dict[str, list[float]] = {}
    for turn in range(TURNS + 1):
        before = loaded(contextlib.nullcontext)
        with streamlint.record(folder / "load.slt", root=HERE):
            recorded = loaded(contextlib.nullcontext)
        after = loaded(contextlib.nullcontext)
        for name, time_taken in recorded.items() if turn else ():
            plain.setdefault(name, []).append((before[name] + after[name]) / 2)
            longer.setdefault(name, []).append(time_taken - plain[name][-1])
    rows = {name: [round(one, 2) for one in (statistics.median(plain[name]), *statistics.quantiles(longer[name], n=4))] for name in plain}
    (folder / "loads.json").write_text(json.dumps({"on": machine(), "plain, longer by (quartiles)": rows}, indent=1))
    print(json.dumps(rows, indent=1))


def machine() -> dict[str, str]:
    import cupy
    import numpy
    import torch

    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    versions = {module.__name__: module.__version__ for module in (torch, cupy, numpy)}
    on = {"gpu": torch.cuda.get_device_name(), "driver": driver.stdout.strip(), "date": time.strftime("%Y-%m-%d")}
    return {**on, "python": sys.version.split()[0], **versions}


# Workers ----------------------------------------------------------------------------------------------------------------------------


class Plain:
    """Times both versions of a program, some rounds at each call."""

    def __init__(self, folder: Path) -> None:
        self.found: dict[str, Any] = {"on": machine(), "programs": {}}
        self.folder, self.at, self.made = folder, "", None

    def loads(self) -> None:
        self.found["loads"] = loaded(contextlib.nullcontext)

    def program(self, name: str, make: Callable[[], Any], run: Callable[..., Any]) -> None:
        walls = self.found["programs"].setdefault(name, {"with": [], "repaired": []})
        if name != self.at:
            self.at, self.made = name, make()
        for number in range(ROUNDS + 1):
            for repaired in (False, True):
                wall = timed(lambda: run(self.made, repaired))  # noqa: B023
                if number:
                    walls["repaired" if repaired else "with"].append(round(wall, 2))

    def end(self) -> None:
        (self.folder / "plain.json").write_text(json.dumps(self.found))


class Kineto:
    """Records programs with PyTorch's profiler."""

    def __init__(self, folder: Path) -> None:
        import torch
        from torch.profiler import ProfilerActivity, profile

        self.both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        self.profile: Callable[..., Any] = profile
        self.folder, self.found = folder, {}  # type: ignore[var-annotated]
        with profile(activities=self.both, with_stack=True, acc_events=True):
            torch.zeros(1, device="cuda")

    def loads(self) -> None:
        for name, stack in (("without stacks", False), ("with stacks", True)):
            self.found[name] = loaded(lambda: self.profile(activities=self.both, with_stack=stack, acc_events=True))  # noqa: B023

    def program(self, name: str, make: Callable[[], Any], run: Callable[..., Any]) -> None:
        made = make()
        timed(lambda: run(made, False))
        with self.profile(activities=self.both, with_stack=True, acc_events=True) as recording:
            timed(lambda: run(made, False))
        recording.export_chrome_trace(str(self.folder / f"{key(name)}.json"))  # the next one takes its times

    def end(self) -> None:
        (self.folder / "kineto.json").write_text(json.dumps(self.found))


class Recorder:
    """Records programs with the project's recorder."""

    def __init__(self, folder: Path) -> None:
        import streamlint

        self.record = streamlint.record
        self.folder, self.found = folder, {}  # type: ignore[var-annotated]
        with self.record(folder / "load.slt"):
            pass

    def loads(self) -> None:
        self.found = loaded(lambda: self.record(self.folder / "load.slt"))

    def program(self, name: str, make: Callable[[], Any], run: Callable[..., Any]) -> None:
        made = make()
        timed(lambda: run(made, False))
        with self.record(self.folder / f"{key(name)}.slt", root=HERE):
            timed(lambda: run(made, False))

    def end(self) -> None:
        (self.folder / "load.slt").unlink()
        (self.folder / "recorder.json").write_text(json.dumps(self.found))


WORKERS: dict[str, type[Plain] | type[Kineto] | type[Recorder]] = {"plain": Plain, "kineto": Kineto, "recorder": Recorder}


def work(kind: str, folder: Path) -> None:
    """Do what is asked for on standard input, a line each: `loads`, `end`, or a program's name."""
    import torch

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is no answer
    torch.zeros(1, device="cuda")
    worker, known = WORKERS[kind](folder), programs("loops")
    print("ready", file=answers, flush=True)
    for row in sys.stdin:
        asked = row.strip()
        try:
            if asked in ("loads", "end"):
                getattr(worker, asked)()
            else:
                worker.program(asked, *known[asked])
        except Exception:
            print(kind, asked, traceback.format_exc(limit=-3), file=sys.stderr, flush=True)
        gc.collect()
        torch.cuda.empty_cache()
        print("done", file=answers, flush=True)


def pairs(folder: Path, name: str) -> None:
    """Time a program of `repairs` with its wait and repaired, in turns, and record it in between."""
    import streamlint

    make, run = programs("repairs")[name]
    made, walls = make(), {"with": [], "repaired": [], "recorded": []}  # type: ignore[var-annotated]

    def both(count: int, keeps: bool) -> None:
        for _ in range(count):
            for way, repaired in (("with", False), ("repaired", True)):
                wall = timed(lambda: run(made, repaired))  # noqa: B023
                walls[way] += [round(wall, 2)] if keeps else []

    both(WARM, keeps=False)
    both(PAIRS, keeps=True)
    for number in range(RECORDINGS):
        with streamlint.record(folder / f"{name}.{number}.slt", root=HERE):
            walls["recorded"] += [round(timed(lambda: run(made, False)), 2) for _ in range(RUNS)]
        both(PAIRS, keeps=True)
    (folder / f"{name}.walls").write_text(json.dumps([machine(), walls]))


def measure_repairs(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"set": "repairs", "programs": {}}
    for name in programs("repairs"):
        subprocess.run([sys.executable, __file__, "pairs", str(folder), name], check=False)
        if (folder / f"{name}.walls").exists():
            found["on"], found["programs"][name] = json.loads((folder / f"{name}.walls").read_text())
            print(name, found["programs"][name], flush=True)
    (folder / "plain.json").write_text(json.dumps(found))


def measure(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.time()
    command = [sys.executable, __file__]
    workers = {
        kind: subprocess.Popen([*command, kind, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for kind in WORKERS
    }

    def ask(kind: str, what: str) -> None:
        worker = workers[kind]
        if worker.poll() is None and worker.stdin and worker.stdout:
            print(what, file=worker.stdin, flush=True)
            worker.stdout.readline()

    for worker in workers.values():
        worker.stdout.readline()  # type: ignore[union-attr]
    print(f"ready at {time.time() - begun:.0f} s", flush=True)
    for kind in WORKERS:
        ask(kind, "loads")
    print(f"loads at {time.time() - begun:.0f} s", flush=True)
    for name in programs("loops"):
        if time.time() - begun > SECONDS:
            print(f"no time left for {name}", flush=True)
            continue
        for kind in ("plain", "kineto", "recorder", "plain"):
            ask(kind, name)
    print(f"programs at {time.time() - begun:.0f} s", flush=True)
    for kind in ("plain", "recorder", "kineto"):
        ask(kind, "end")
    print(f"ends at {time.time() - begun:.0f} s", flush=True)
    for worker in workers.values():
        worker.stdin.close()  # type: ignore[union-attr]
        worker.wait()
    with ProcessPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        list(pool.map(pack, sorted(folder.glob("*.json"))))
    print(f"packed at {time.time() - begun:.0f} s", flush=True)


_KEPT = ("cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "python_function", "cuda_sync", "Trace")
_TOLD = ("correlation", "bytes", "stream", "device", "Python id", "Python parent id")


def pack(path: Path) -> None:
    """Keep what a trace's reader asks for, packed."""
    data = json.loads(path.read_text())
    if "traceEvents" not in data:
        return
    events = [event for event in data["traceEvents"] if event.get("cat") in _KEPT or event.get("ph") == "M"]
    for event in events:
        event["args"] = {name: value for name, value in event.get("args", {}).items() if name in _TOLD or event["ph"] == "M"}
    data["traceEvents"] = events
    with gzip.open(f"{path}.gz", "wt", compresslevel=5) as file:
        json.dump(data, file, separators=(",", ":"))
    path.unlink()


# Estimates beside gains -------------------------------------------------------------------------------------------------------------


def told(name: str, folder: Path, chosen: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is estimated of the marked lines of a program, from each of its recordings."""
    from streamlint.trace.analysis import costs_of
    from streamlint.trace.readers import kineto as from_kineto
    from streamlint.trace.readers import recorded

    file = file_of(chosen, name)
    stalls = stalls_in(file)
    readers: dict[str, tuple[str, int, Callable[[Path], Any]]] = {
        "kineto": (".json.gz", 1, lambda path: from_kineto.read(path, [HERE])),
        "recorder": (".slt", RUNS if chosen == "repairs" else 1, recorded.read),
    }
    for how, (ending, runs, read) in readers.items():
        rows: list[dict[str, float]] = []
        for path in sorted(folder.glob(f"{key(name)}*{ending}")):
            costs = costs_of(read(path), lambda recorded: file.name if recorded.endswith(file.name) else None)
            mine = [cost for cost in costs.costs if set(cost.place.lines) & stalls]
            sums = {part: sum(getattr(cost, part) or 0 for cost in mine) for part in ("blocked", "idle", "avoidable", "gain")}
            rows.append({part: time / 1e6 / runs for part, time in {"wall": costs.wall, **sums}.items()})
        if rows:
            yield how, {part: round(statistics.mean(row[part] for row in rows), 2) for part in rows[0]}


def compared(name: str, folder: Path, chosen: str, walls: dict[str, list[float]]) -> dict[str, Any]:
    before, after = (statistics.median(walls[way]) for way in ("with", "repaired"))
    gain = statistics.median(one - other for one, other in zip(walls["with"], walls["repaired"], strict=True))
    row: dict[str, Any] = {"with": before, "repaired": after, "gain": round(gain, 2)}
    if "recorded" in walls:
        row["recorded"] = statistics.median(walls["recorded"])
    try:
        row.update(told(name, folder, chosen))
    except Exception:
        print(name, traceback.format_exc(limit=-3), file=sys.stderr)
    return row


def tell(folder: Path) -> dict[str, Any]:
    """The estimates of a measurement beside its gains, also as a table on standard error."""
    said = json.loads((folder / "plain.json").read_text())
    chosen = said.get("set", "loops")
    with ProcessPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        rows = [(name, pool.submit(compared, name, folder, chosen, walls)) for name, walls in said["programs"].items() if walls["repaired"]]
        found = {name: row.result() for name, row in rows}
    for name, row in found.items():
        print(f"{name:24} with {row['with']:7.1f} repaired {row['repaired']:7.1f} gain {row['gain']:6.1f}", file=sys.stderr)
        for how in ("kineto", "recorder"):
            if one := row.get(how):
                ratio = f"{one['gain'] / row['gain']:5.2f}" if row["gain"] > 0 else "    -"
                print(f"    {how:10} {ratio}  {one}", file=sys.stderr)
    more = {
        part: json.loads((folder / f"{part}.json").read_text()) for part in ("kineto", "recorder") if (folder / f"{part}.json").exists()
    }
    return {"on": said["on"], "set": chosen, "programs": found, "loads": {"plain": said.get("loads"), **more}}


def main() -> None:
    what, *words = sys.argv[1:]
    if what in WORKERS:
        work(what, Path(words[0]))
    elif what == "pairs":
        pairs(Path(words[0]), words[1])
    elif what == "loads":
        recorded_loads(Path(words[0]))
    elif what == "measure":
        (measure_repairs if "repairs" in words else measure)(Path(words[0]))
    else:
        print(json.dumps([tell(Path(word)) for word in words], indent=1))


if __name__ == "__main__":
    main()
