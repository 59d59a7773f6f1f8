"""Which calls of PyTorch make the host wait for the device, measured: PyTorch's own database of operators, and ``operator_calls.toml``.

    python benchmarks/operator_waits.py measure RAW.json [SECONDS]     (needs a GPU)
    python benchmarks/operator_waits.py tell RAW.json > benchmarks/operator_waits.json

Each call is looked at in three ways. PyTorch's debug mode says whether PyTorch itself waits. CUPTI tells the calls of the driver that wait,
and copies into pageable memory, whoever makes them. And work that lasts is queued in front of the call: a call that returns before that is
done did not wait. A call waits where the last one says so; ``tell`` counts the calls of which the three do not say the same.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tomllib

CALLS = Path(__file__).with_suffix("").with_name("operator_calls.toml")
GATE_MS, LONG_GATE_MS = 6, 80
MOST_SHOWN = 5
"""Calls of a name, of either kind: those of optimizers differ little."""
MOST_SECONDS = 2.5
"""Of an operator: some have hundreds of samples."""
_ASKED = re.compile(
    r"^(cuda|cu)(StreamSynchronize|DeviceSynchronize|CtxSynchronize|EventSynchronize|MemcpyAsync|Memcpy|Memcpy2D|Memcpy2DAsync|"
    r"Memcpy(HtoD|DtoH|DtoD)(Async)?)(_ptsz|_ptds|_v2|_v2_ptsz|_v2_ptds)?(_v\d+)?$"
)


class Data(ctypes.Structure):
    """What CUPTI hands to a callback."""

    _fields_ = (
        ("site", ctypes.c_int), ("name", ctypes.c_char_p), ("params", ctypes.c_void_p), ("ret", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p), ("context", ctypes.c_void_p), ("uid", ctypes.c_uint32), ("data", ctypes.c_void_p),
        ("correlation", ctypes.c_uint32),
    )  # fmt: skip


class Cupti:
    """Calls of the runtime and of the driver that may wait, as they are made, on whatever thread."""

    def __init__(self) -> None:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        found = next((line.split()[-1] for line in maps if "libcupti" in line), "libcupti.so.13")
        self.library, self.driver = ctypes.CDLL(found), ctypes.CDLL("libcuda.so.1")
        self.seen: list[str] = []
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(Data))(self._called)
        subscriber, name = ctypes.c_void_p(), ctypes.c_char_p()
        if self.library.cuptiSubscribe(ctypes.byref(subscriber), self.callback, None):
            raise SystemExit("CUPTI is in use")
        for domain in (2, 1):  # runtime, driver
            for number in range(1, 900):
                is_named = self.library.cuptiGetCallbackName(domain, number, ctypes.byref(name)) == 0 and name.value
                if is_named and _ASKED.match((name.value or b"").decode()):
                    self.library.cuptiEnableCallback(1, subscriber, domain, number)

    def _called(self, _user: Any, _domain: int, _number: int, data: Any) -> None:
        one = data.contents
        if one.site == 0:
            name = re.sub(r"(_v2|_ptsz|_ptds|_v\d+)+$", "", one.name.decode())
            if re.match(r"cu(da)?Memcpy(HtoD|DtoH|DtoD)?Async$", name) and one.params:
                to, source = (ctypes.cast(one.params, ctypes.POINTER(ctypes.c_uint64))[place] for place in range(2))
                name += f" {self._kind(source)}-{self._kind(to)}"
            self.seen.append(name)

    def _kind(self, pointer: int) -> str:
        kind = ctypes.c_uint(0)
        status = self.driver.cuPointerGetAttribute(ctypes.byref(kind), 2, ctypes.c_void_p(pointer))
        return "pageable" if status else {1: "pinned", 2: "device"}.get(kind.value, "other")

    def during(self, call: Callable[[], object]) -> list[str]:
        """The calls that a call makes."""
        self.seen.clear()
        call()
        return sorted(set(self.seen))


def is_wait(name: str) -> bool:
    """Whether a call that CUPTI names makes the host wait for the work of a stream: a copy into pageable memory does."""
    return "Synchronize" in name or name.endswith("-pageable") or name in ("cudaMemcpy", "cuMemcpyDtoH")


class Meter:
    """Looks at calls."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        torch.zeros(1, device="cuda").add_(1)
        self.cupti = Cupti()
        self.cycles = self._cycles()

    def _cycles(self) -> float:
        """Of the clock that ``_sleep`` reads, in a millisecond."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda._sleep(10**6)
        start.record()
        self.torch.cuda._sleep(10**7)
        end.record()
        self.torch.cuda.synchronize()
        return float(10**7 / start.elapsed_time(end))

    def look(self, make: Callable[[], Callable[[], object]]) -> list[Any]:
        """What the debug mode, CUPTI and the gate say of a call; why, where it fails. ``make`` prepares it anew each time."""
        try:
            make()()
            self.torch.cuda.synchronize()
            told = self._debug(self._ready(make))
            seen = self.cupti.during(self._ready(make))
            waits = self._is_held(self._ready(make), GATE_MS)
            if waits and not told and not any(map(is_wait, seen)):
                waits = self._is_held(self._ready(make), LONG_GATE_MS)
        except Exception as problem:
            if "device-side assert" in str(problem):
                raise SystemExit("a call broke the device") from problem
            return [repr(problem)[:120]]
        return [int(told), seen, int(waits)]

    def _ready(self, make: Callable[[], Callable[[], object]]) -> Callable[[], object]:
        call = make()
        self.torch.cuda.synchronize()
        return call

    def _debug(self, call: Callable[[], object]) -> bool:
        self.torch.cuda.set_sync_debug_mode("error")
        try:
            call()
        except Exception as problem:
            if "synchronizing CUDA operation" not in str(problem):
                raise
            return True
        finally:
            self.torch.cuda.set_sync_debug_mode("default")
        return False

    def _is_held(self, call: Callable[[], object], gate_ms: float) -> bool:
        """Whether what was queued before is done as the call returns."""
        event = self.torch.cuda.Event()
        self.torch.cuda._sleep(int(gate_ms * self.cycles))
        event.record()
        kept = call()
        is_done = event.query()
        self.torch.cuda.synchronize()
        del kept
        return bool(is_done)


def cases() -> Iterator[tuple[str, str, str]]:
    """What a call is of, its code, and the code that runs before it."""
    said = tomllib.loads(CALLS.read_text(encoding="utf-8"))
    before = {start: "\n".join(lines) + "\n" for start, lines in said["before"].items()}

    def first(name: str) -> str:
        return str(said["prepare"]) + next((code for start, code in before.items() if name.startswith(start)), "")

    for name, codes in said["calls"].items():
        yield from ((name, code, first(name)) for code in codes)
    for kind in said["optimizers"]["kinds"]:
        for mode in said["optimizers"]["modes"]:
            made = f"ps = grads()[:1]; opt = optim.{kind}(ps, {mode}); opt.step()"
            yield f"torch.optim.{kind}.step", f"optim.{kind}(…, {mode}).step()", said["prepare"] + made
    for kind, given in said["distributions"]["made"].items():
        for checks in ("", ", validate_args=False"):
            made = f"D.{kind}({given}{checks})"
            yield f"torch.distributions.{kind}", made, said["prepare"]
            if not checks:
                off = "D.Distribution.set_default_validate_args(False)"
                yield f"torch.distributions.{kind}", f"{made}  # all checks off", said["prepare"] + off
            for code in said["distributions"]["asked"]:
                name = f"torch.distributions.{kind}.{code.partition('(')[0][2:]}"
                yield name, code + (f"  # {checks[2:]}" if checks else ""), said["prepare"] + f"d = {made}; s = d.sample()"
    for one in said["more"]:
        yield one["of"], one["code"], first(one["of"]) + one["before"]


def prepared(code: str, before: str, device: str = "cuda") -> Callable[[], object]:
    """A call, with its names made anew."""
    names: dict[str, Any] = {"dev": device}
    exec(before, names)
    text = "opt.step()" if "…" in code else code
    if text.startswith("with ") or re.search(r"[\])] = ", text):
        body = compile(text, "call", "exec")
        return lambda: exec(body, names)
    expression = compile(text, "call", "eval")
    return lambda: eval(expression, names)


def shown(value: Any) -> Any:
    """An argument of a sample, short."""
    if hasattr(value, "is_sparse"):
        return f"{tuple(value.shape)}:{str(value.dtype)[6:]}:{value.device.type}"
    return [shown(one) for one in value] if isinstance(value, (list, tuple)) else repr(value)[:40]


def samples(op: Any, torch: Any) -> tuple[str, Iterator[Any]]:
    """The type of the elements, and the samples of an operator."""
    known = op.supported_dtypes("cuda")
    dtype = next(kind for kind in (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float16, torch.bfloat16) if kind in known)
    return str(dtype)[6:], op.sample_inputs("cuda", dtype, requires_grad=False)


def measure(raw: Path, seconds: float) -> None:
    """Look at all calls, and write down what was seen."""
    warnings.simplefilter("ignore")
    begin = time.time()
    meter = Meter()
    torch = meter.torch
    out: dict[str, Any] = {
        "platform": _platform(torch),
        "date": time.strftime("%Y-%m-%d"),
        "calls": [],
        "operators": {},
    }
    for name, code, before in cases():
        out["calls"].append([name, code, *meter.look(lambda code=code, before=before: prepared(code, before))])  # type: ignore[misc]
    raw.write_text(json.dumps(out))
    print(len(out["calls"]), "calls", round(time.time() - begin), "s", flush=True)
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if time.time() - begin > seconds:
            out["stopped at"] = op.name
            break
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        out["operators"][name] = _operator(meter, op, torch)
    raw.write_text(json.dumps(out))
    print(len(out["operators"]), "operators", round(time.time() - begin), "s", flush=True)


def _operator(meter: Meter, op: Any, torch: Any) -> dict[str, Any]:
    names = [f"torch.{op.name}"] * (_at(torch, op.name) is not None) + [f"torch.Tensor.{op.name}"] * (op.method_variant is not None)
    found: dict[str, Any] = {"names": names, "samples": []}
    begin = time.time()
    try:
        found["dtype"], given = samples(op, torch)
        for one in given:
            seen = meter.look(lambda one=one: lambda: op(one.input, *one.args, **one.kwargs))  # type: ignore[misc]
            given_as = [shown(one.input), [shown(x) for x in one.args], {key: shown(x) for key, x in one.kwargs.items()}]
            found["samples"].append([*seen, *given_as])
            if time.time() - begin > MOST_SECONDS:
                break
    except Exception as problem:
        found["failed"] = repr(problem)[:120]
    return found


def _at(torch: Any, name: str) -> Any:
    for part in name.split("."):
        torch = getattr(torch, part, None)
    return torch


def _platform(torch: Any) -> dict[str, str]:
    driver = os.popen("nvidia-smi --query-gpu=driver_version --format=csv,noheader").read().split()
    return {
        "gpu": torch.cuda.get_device_name(0),
        "driver": driver[0] if driver else "",
        "cuda_runtime": str(torch.version.cuda),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


# --- what was seen, told


def tell(raw: Any) -> dict[str, Any]:
    """Each name with the calls that waited and that did not; of the database, the counts and an example of either kind."""
    calls: dict[str, dict[str, list[str]]] = {}
    failed = 0
    odd: dict[str, int] = {}
    alike = 0
    for name, code, *seen in raw["calls"]:
        if len(seen) == 1:
            failed += 1
            continue
        calls.setdefault(name.replace("torch.distributions.", "D."), {"waits": [], "not": []})["waits" if seen[2] else "not"].append(code)
        alike += _notes(odd, name, seen)
    found: dict[str, dict[str, Any]] = {"always": {}, "some": {}, "never": {}}
    for name, one in raw["operators"].items():
        known = [sample for sample in one["samples"] if len(sample) == 6]
        failed += len(one["samples"]) - len(known)
        alike += sum(_notes(odd, name, sample) for sample in known)
        filled = [sample for sample in known if not re.search(r"\((\d+, )*0[,)]", json.dumps(sample[3:]))]
        counts = (sum(sample[2] for sample in filled), len(filled))
        if filled:
            kind = "never" if not counts[0] else "always" if counts[0] == counts[1] else "some"
            found[kind][name] = {"names": one["names"], "waited": counts[0], "of": counts[1]}
        if filled and kind == "some":
            found[kind][name] |= {key: _example(filled, wanted) for key, wanted in (("as", 1), ("not as", 0))}
    for kinds in calls.values():
        kinds["waits"], kinds["not"] = kinds["waits"][:MOST_SHOWN], kinds["not"][:MOST_SHOWN]
    return {
        "platform": raw["platform"],
        "date": raw["date"],
        "looked at": alike + sum(odd.values()),
        "all three agree": alike,
        "the debug mode alone is silent": odd,
        "failed": failed,
        "calls": {name: {key: codes for key, codes in kinds.items() if codes} for name, kinds in calls.items() if kinds["waits"]},
        "calls that never wait": [name for name, kinds in calls.items() if not kinds["waits"]],
        **{f"operators, {kind}": of for kind, of in found.items() if kind != "never"},
        "operators, never": sorted(found["never"]),
    }


def _notes(odd: dict[str, int], name: str, seen: list[Any]) -> bool:
    """Whether the three say the same; where the debug mode alone is silent, it is counted, and all else is an error."""
    told, calls, waits = seen[:3]
    sees = any(map(is_wait, calls))
    if sees != bool(waits) or (told and not waits):
        raise SystemExit(f"{name}: {told} {calls} {waits}")
    if told == waits:
        return True
    odd[name] = odd.get(name, 0) + 1
    return False


def _example(known: list[Any], wanted: int) -> str:
    _, _, _, given, arguments, keywords = next(sample for sample in known if sample[2] == wanted)
    named = (f"{key}={value}" for key, value in keywords.items() if key not in ("device", "dtype", "requires_grad"))
    return ", ".join([str(given), *map(str, arguments), *named]).replace(":cuda", "")


def written(found: dict[str, Any]) -> str:
    """A line for each name."""
    parts = []
    for key, held in found.items():
        text = json.dumps(held, ensure_ascii=False)
        if isinstance(held, dict):
            text = "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in held.items()) + "\n}"
        elif isinstance(held, list):
            text = textwrap.fill(text, 140, break_long_words=False, break_on_hyphens=False)
        parts.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}"


if __name__ == "__main__":
    if sys.argv[1] == "tell":
        print(written(tell(json.loads(Path(sys.argv[2]).read_text()))))
    else:
        measure(Path(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 400.0)
