"""Which public functions of CuPy make the host wait for the device, measured: all of them, with arguments made from their signatures.

    python benchmarks/cupy_waits.py measure RAW.jsonl [SECONDS] [DONE.jsonl]     (needs a GPU, and libcupti)
    python benchmarks/cupy_waits.py look CODE …
    python benchmarks/cupy_waits.py tell RAW.jsonl … > benchmarks/cupy_waits.json

A call is looked at in two ways. Work that lasts is queued in front of it: a call that returns before that is done did not wait. CUPTI
tells the calls of the driver that wait, and copies into pageable memory. Arguments come from the names of parameters: a parameter is an
array unless its name says otherwise, and each function is tried with arrays of several types and shapes. A call that raises is left out.
The functions are measured by several processes, since each compiles its kernels; names in ``DONE.jsonl`` are left out.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy_calls

GATE_MS, LONG_GATE_MS = 6, 60
MOST_SECONDS = 4.0
"""Of a function: the kernels of each type are compiled at the first call."""
WORKERS = 14
SPIN = r"""extern "C" __global__ void spin(long long n) { long long t = clock64(); while (clock64() - t < n) {} }"""


# --- the functions


def functions() -> Iterator[tuple[str, str]]:
    """Dotted name of each public function, class and method, and the expression that gives it."""
    seen = set()
    for module in cupy_calls.SAID["modules"]:
        try:
            names = sorted(public(importlib.import_module(module)))
        except ImportError:
            continue
        for name in names:
            dotted = f"{module}.{name}"
            if dotted not in cupy_calls.SAID["left"] and not any(dotted.startswith(start) for start in cupy_calls.SAID["left_below"]):
                seen.add(dotted)
                yield dotted, dotted
    for dotted, made in cupy_calls.SAID["objects"].items():
        kind = dotted.rpartition(".")
        try:
            owner = getattr(importlib.import_module(kind[0]), kind[2])
        except (ImportError, AttributeError):
            continue
        for name in sorted(
            n for n in dir(owner) if (not n.startswith("_") or n in cupy_calls.SAID["operators"]) and callable(getattr(owner, n))
        ):
            if f"{dotted}.{name}" not in cupy_calls.SAID["left"]:
                yield f"{dotted}.{name}", f"{made}.{name}"
    for dotted in cupy_calls.BY_HAND:
        if dotted not in seen:
            yield dotted, ""


def public(module: Any) -> Iterator[str]:
    """Names of a module that users call: no modules, types of elements, or what numpy gives unchanged."""
    listed = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    for name in listed:
        value = getattr(module, name, None)
        home = str(getattr(value, "__module__", None) or "")
        is_other = inspect.ismodule(value) or not callable(value) or home.split(".")[0] in ("numpy", "scipy", "typing", "builtins")
        if not is_other and not (isinstance(value, type) and issubclass(value, BaseException)):
            yield name


# --- the arguments


def parameters(call: Any) -> list[inspect.Parameter]:
    """Of a callable, as far as it tells them; of ufuncs and kernels by their counts."""
    count = getattr(call, "nin", None)
    if isinstance(count, int):
        return [inspect.Parameter(f"x{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for i in range(count)]
    try:
        return [one for name, one in inspect.signature(call).parameters.items() if name not in ("self", "cls")]
    except (TypeError, ValueError):
        text = (getattr(call, "__doc__", None) or "").split("\n")[0]
        inside = text.partition("(")[2].rpartition(")")[0]
        named = [part.strip() for part in inside.split(",") if part.strip() and part.strip() not in ("self", "/", "*")]
        return [
            inspect.Parameter(
                part.partition("=")[0].split(":")[0].split(" ")[-1].strip("*"),
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=part.partition("=")[2].strip() if "=" in part else inspect.Parameter.empty,
            )
            for part in named
            if part.partition("=")[0].split(":")[0].split(" ")[-1].strip("*").isidentifier()
        ]


def plain_codes(name: str, expression: str, call: Any) -> Iterator[tuple[str, str]]:
    """Codes that call a function with what it must get, each also without its closing bracket: by hand, then with several arrays."""
    yield from ((code, "") for code in cupy_calls.BY_HAND.get(name, ()))
    if not expression:
        return
    required = [
        one for one in parameters(call) if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    for profile in cupy_calls.PROFILES:
        arguments = ", ".join(cupy_calls.argument(one.name, profile) for one in required)
        of = profile + expression[1:] if expression.startswith("x.") and profile in "vibc" else expression
        yield f"{of}({arguments})", f"{of}({arguments}"
    if not required:
        for profile in cupy_calls.PROFILES:
            yield from ((f"{expression}({', '.join([profile] * count)})", "") for count in (1, 2, 3))


def option_codes(call: Any, begun: str) -> Iterator[str]:
    """Codes that call a function with one option more each."""
    separator = "" if begun.endswith("(") else ", "
    for one in parameters(call):
        if one.default is not one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            value = cupy_calls.option(one.name, one.default)
            if value is not None:
                yield f"{begun}{separator}{one.name}={value})"


# --- looking


class Meter:
    """Looks at calls of CuPy."""

    def __init__(self) -> None:
        import cupy

        with contextlib.suppress(ImportError):
            importlib.import_module("torch")  # it brings libcupti
        from operator_waits import Cupti, is_wait

        self.cupy, self.is_wait = cupy, is_wait
        self.spin = cupy.RawKernel(SPIN, "spin")
        self.spin((1,), (1,), (1000,))
        self.event = cupy.cuda.Event(disable_timing=True)
        self.names = cupy_calls.names()
        self.cupti = Cupti()
        self.cycles = self._cycles()

    def _cycles(self) -> float:
        start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        self.spin((1,), (1,), (10**6,))
        start.record()
        self.spin((1,), (1,), (10**7,))
        end.record()
        end.synchronize()
        return float(10**7 / self.cupy.cuda.get_elapsed_time(start, end))

    def look(self, code: str) -> tuple[str, list[Any]]:
        """What came back, and ``[what CUPTI saw, whether the gate held]``; the problem, where the call fails."""
        body = compile(code, "call", "eval")

        def ready() -> Callable[[], Any]:
            again = cupy_calls.prepared(self.names)
            self.cupy.cuda.Device().synchronize()
            return lambda: eval(body, again)

        try:
            gives = cupy_calls.kind_of(ready()())
            ready()()
            self.cupy.cuda.Device().synchronize()
            seen = self.cupti.during(ready())
            waits = self._is_held(ready(), GATE_MS)
            if waits and not any(map(self.is_wait, seen)):
                waits = self._is_held(ready(), LONG_GATE_MS)
        except Exception as problem:
            if "illegal" in str(problem) or "assert" in str(problem) or "unspecified launch" in str(problem):
                raise SystemExit(3) from problem
            return "", [f"{type(problem).__name__}: {problem}"[:100]]
        return gives, [seen, int(waits)]

    def _is_held(self, call: Callable[[], Any], gate_ms: float) -> bool:
        """Whether what was queued before is done as the call returns."""
        self.spin((1,), (1,), (int(gate_ms * self.cycles),))
        self.event.record()
        kept = call()
        is_done = self.event.done
        self.cupy.cuda.Device().synchronize()
        del kept
        return bool(is_done)


def work(share: int, start: int, out: Path, deadline: float, done: set[str]) -> None:
    """Measure each function of a share, from a place on, a line for each; a line without results goes before."""
    warnings.simplefilter("ignore")
    meter = Meter()
    mine = [one for number, one in enumerate(functions()) if number % WORKERS == share]
    with out.open("a", encoding="utf-8") as file:
        for place, (name, expression) in enumerate(mine[start:], start):
            if time.time() > deadline:
                return
            if name in done:
                continue
            file.write(json.dumps({"place": place}) + "\n")
            file.flush()
            file.write(json.dumps(measured(meter, name, expression, deadline)) + "\n")
            file.flush()
        file.write(json.dumps({"end": True}) + "\n")


def measured(meter: Meter, name: str, expression: str, deadline: float) -> dict[str, Any]:
    """What a function did in each call that succeeded."""
    found: dict[str, Any] = {"name": name, "calls": [], "failed": []}
    try:
        call = eval(expression, cupy_calls.prepared(meter.names)) if expression else None
    except Exception as problem:
        return found | {"failed": [repr(problem)[:100]]}
    begin = time.time()
    begun = ""
    tried = set()

    def attempt(code: str) -> bool:
        if code in tried or time.time() - begin > MOST_SECONDS or time.time() > deadline:
            return False
        tried.add(code)
        gives, seen = meter.look(code)
        if len(seen) == 1:
            found["failed"] = [*found["failed"], f"{code}: {seen[0]}"][:6]
        else:
            found["calls"].append([code, gives, *seen])
        return len(seen) > 1

    for code, start in plain_codes(name, expression, call):
        by_hand = code in cupy_calls.BY_HAND.get(name, ())
        if (by_hand or len(found["calls"]) < cupy_calls.MOST_PLAIN) and attempt(code):
            begun = begun or start
    if begun:
        for code in option_codes(call, begun):
            if len(found["calls"]) < cupy_calls.MOST_CALLS:
                attempt(code)
    return found


def measure(raw: Path, seconds: float, done: Path | None) -> None:
    """Start the processes, and start one again behind the function at which it ended early."""
    deadline = time.time() + seconds
    parts = [raw.with_name(f"part{share}.jsonl") for share in range(WORKERS)]
    running: dict[int, tuple[subprocess.Popen[bytes], float, int]] = {}

    def begin(share: int, start: int) -> None:
        command = [sys.executable, __file__, "work", str(share), str(start), str(parts[share]), str(deadline), str(done or "")]
        running[share] = (subprocess.Popen(command), time.time(), -1)

    for share in range(WORKERS):
        begin(share, 0)
    while running and time.time() < deadline + 6:
        time.sleep(0.3)
        for share, (process, since, size) in list(running.items()):
            grown = parts[share].stat().st_size if parts[share].exists() else 0
            if grown != size:
                running[share] = (process, time.time(), grown)
            elif time.time() - since > 25:
                process.kill()
            if process.poll() is not None:
                del running[share]
                lines = [json.loads(line) for line in parts[share].read_text().splitlines()] if parts[share].exists() else []
                places = [line["place"] for line in lines if "place" in line]
                if time.time() < deadline - 5 and places and not any("end" in line for line in lines):
                    begin(share, places[-1] + 1)
    for process, _, _ in running.values():
        process.kill()
    lines = [line for part in parts if part.exists() for line in part.read_text().splitlines() if '"name"' in line]
    raw.write_text("\n".join([json.dumps(machine()), *lines]) + "\n", encoding="utf-8")
    for part in parts:
        part.unlink(missing_ok=True)
    print(len(lines), "of", len(list(functions())), "functions looked at")


def machine() -> dict[str, Any]:
    """What was measured on."""
    import cupy

    driver = os.popen("nvidia-smi --query-gpu=driver_version --format=csv,noheader").read().split()
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    return {
        "gpu": properties["name"].decode(),
        "driver": driver[0] if driver else "",
        "cuda_runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "cupy": cupy.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "functions": [name for name, _ in functions()],
    }


# --- what was seen, told


def tell(files: list[Path]) -> dict[str, Any]:
    """Each function under always, some or never, with what it gives; calls of which the two ways do not say the same are counted."""
    from operator_waits import is_wait

    found: dict[str, Any] = {"always": {}, "some": {}, "never": {}}
    odd: dict[str, list[str]] = {}
    looked, listed, failed = 0, set(), set()
    head: dict[str, Any] = {}
    for file in files:
        first, *lines = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
        head = {key: value for key, value in first.items() if key != "functions"}
        listed.update(first["functions"])
        for line in lines:
            looked += len(line["calls"])
            agreed = []
            for code, gives, seen, waits in line["calls"]:
                if any(map(is_wait, seen)) == bool(waits):
                    agreed.append((code, gives, waits))
                else:
                    odd.setdefault(line["name"], []).append(f"{code}: gate {waits}, CUPTI {seen}")
            if not agreed:
                failed.add(line["name"])
                continue
            count = sum(waits for *_, waits in agreed)
            kind = "always" if count == len(agreed) else "some" if count else "never"
            one: dict[str, Any] = {"gives": sorted({gives for _, gives, _ in agreed})}
            if kind != "never":
                one["waits"] = [code for code, _, waits in agreed if waits][:3]
            if kind == "some":
                one["not"] = [code for code, _, waits in agreed if not waits][:3]
            found[kind][line["name"]] = one
    known = {name for kind in found.values() for name in kind}
    return {
        "platform": head,
        "public functions": len(listed),
        "measured": len(known),
        "calls": looked,
        "the two disagree": odd,
        **{kind: dict(sorted(of.items())) for kind, of in found.items()},
        "not measured": sorted(listed - known),
    }


def written(found: dict[str, Any]) -> str:
    """A line for each function; those that never wait by what they give."""
    found = dict(found)
    never: dict[str, list[str]] = {}
    for name, one in found["never"].items():
        never.setdefault(" | ".join(one["gives"]), []).append(name)
    found["never"] = dict(sorted(never.items()))
    parts = []
    for key, held in found.items():
        if isinstance(held, dict) and held and key != "platform":
            text = "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in held.items()) + "\n}"
        else:
            text = json.dumps(held)
        parts.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}"


if __name__ == "__main__":
    mode, *rest = sys.argv[1:]
    if mode == "tell":
        print(written(tell([Path(one) for one in rest])))
    elif mode == "look":
        meter = Meter()
        for code in rest:
            print(code, *meter.look(code))
    elif mode == "work":
        known = {json.loads(line).get("name", "") for line in Path(rest[4]).read_text().splitlines()} if rest[4] else set()
        work(int(rest[0]), int(rest[1]), Path(rest[2]), float(rest[3]), known)
    else:
        measure(Path(rest[0]), float(rest[1]) if len(rest) > 1 else 100.0, Path(rest[2]) if len(rest) > 2 else None)
