"""A: CUDA tensors through torch's queues: which stream the event is recorded on, and what becomes of the sender's memory."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from questions import Part, Row, Say, find, median, told

QUESTION = "mp.Queue (feeder thread) with a side-stream producer; the shared_cache race; deletion right after put"
PARTS = (Part("torch", lazy=True),)
HOLD_MS = 200
_RUNS, _WARM_RUNS = 10, 2
_START_S, _ANSWER_S = 50.0, 10.0  # the first answer takes an import and a context
_COUNT = 1024  # floats; all tensors then lie in one segment, which the consumer keeps open
_POISON, _OLD, _NEW, _OVER = -1.0, 1.0, 2.0, -5.0
_QUEUE, _SIMPLE = "Queue", "SimpleQueue"
_SIDE = (
    (_QUEUE, "put from the default stream, no wait"),
    (_QUEUE, "put inside of the side stream's scope, no wait"),
    (_SIMPLE, "put from the default stream, no wait"),
    (_SIMPLE, "put inside of the side stream's scope, no wait"),
    (_QUEUE, "put after default.wait_stream(side)"),
    (_QUEUE, "put after side.synchronize()"),
)


def consume(queues: dict[str, Any], commands: Any) -> None:
    """The other process: gets a tensor when told to, reads it at once on its default stream, answers with its lowest and highest value."""
    held: list[Any] = []
    while True:
        command = commands.recv()
        if command is None:
            return
        source, hold = command
        try:
            tensor = queues[source].get()
            values = tensor.cpu()
            said: Any = (float(values.min()), float(values.max()))
            if hold:
                held.append(tensor)
            del tensor  # before the answer: the sender goes on only when it is gone
        except Exception as problem:
            said = told(problem)
        commands.send(said)


class Pair:
    """This process and its consumer."""

    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")
        context = importlib.import_module("torch.multiprocessing").get_context("spawn")
        self.queues: dict[str, Any] = {_QUEUE: context.Queue(), _SIMPLE: context.SimpleQueue()}
        self._here, there = context.Pipe()
        self._process = context.Process(target=consume, args=(self.queues, there), daemon=True)
        self._process.start()
        self.side = self.torch.cuda.Stream()
        self._keep: list[Any] = []
        self.cycles = self._calibrate()

    def _calibrate(self) -> int:
        """Cycles that keep the device busy for ``HOLD_MS``; first at full clocks, then measured."""
        cuda = self.torch.cuda
        cycles = 20_000_000
        for _ in range(4):
            begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            begin.record()
            cuda._sleep(cycles)
            end.record()
            cuda.synchronize()
            cycles = int(cycles * HOLD_MS / max(begin.elapsed_time(end), 1e-3))
        return cycles

    def tensor(self, value: float) -> Any:
        """A tensor of its own that lives until the end: a block that comes back would be in the consumer's cache."""
        made = self.torch.full((_COUNT,), value, device="cuda")
        self.torch.cuda.synchronize()
        self._keep.append(made)
        return made

    def ask_for(self, source: str, *, hold: bool = False) -> None:
        """Tell the consumer to get from that queue, and whether to hold the tensor until the end."""
        self._here.send((source, hold))

    def hear(self, seconds: float = _ANSWER_S) -> tuple[float, float]:
        """What the consumer read."""
        if not self._here.poll(seconds):
            raise TimeoutError(f"the consumer did not answer within {seconds:.0f} s (its exit status: {self._process.exitcode})")
        said = self._here.recv()
        if isinstance(said, str):
            raise RuntimeError(f"the consumer: {said}")
        low, high = said
        return float(low), float(high)

    def close(self) -> None:
        """Let the consumer end."""
        self._here.send(None)
        self._process.join(5.0)


Seen = dict[str, Any]


def ask(part: str, say: Say, scratch: Path) -> None:
    """Each case in turn; one that fails costs its own row, unless the consumer is lost with it."""
    pair = Pair()
    pair.ask_for(_SIMPLE, hold=True)  # holds the segment open
    pair.queues[_SIMPLE].put(pair.tensor(_OLD))
    pair.hear(_START_S)
    say({"case": "facts", "torch": str(pair.torch.__version__), "hold_ms": _held_ms(pair)})
    cases: list[tuple[str, Callable[[], Seen]]] = [(f"{queue}: {how}", _side_case(pair, queue, how)) for queue, how in _SIDE]
    cases += [
        ("Queue: the sender deletes right after put and overwrites", lambda: _deleted(pair)),
        ("SimpleQueue: sent again while the consumer holds the first view", lambda: _again(pair, hold=True)),
        ("SimpleQueue: sent again after the consumer dropped the first view", lambda: _again(pair, hold=False)),
    ]
    for case, run in cases:
        try:
            seen = [run() for _ in range(_WARM_RUNS + _RUNS)][_WARM_RUNS:]
        except Exception as problem:
            say({"case": case, "failure": told(problem)})
            if isinstance(problem, TimeoutError):
                break
        else:
            say(_row(case, seen))
    pair.close()


def _held_ms(pair: Pair) -> float:
    cuda = pair.torch.cuda
    begin = time.perf_counter()
    cuda._sleep(pair.cycles)
    cuda.synchronize()
    return round((time.perf_counter() - begin) * 1e3, 1)


def _side_case(pair: Pair, queue: str, how: str) -> Callable[[], Seen]:
    torch, target = pair.torch, pair.queues[queue]

    def run() -> Seen:
        tensor = pair.tensor(_POISON)
        written = torch.cuda.Event()
        pair.ask_for(queue)
        with torch.cuda.stream(pair.side):
            torch.cuda._sleep(pair.cycles)
            tensor.fill_(_NEW)
            written.record()
            begin = time.perf_counter()
            if "inside" in how:
                target.put(tensor)
        if "wait_stream" in how:
            torch.cuda.current_stream().wait_stream(pair.side)
        elif "synchronize" in how:
            pair.side.synchronize()
        if "inside" not in how:
            target.put(tensor)
        return _seen(pair, written, begin, old=_POISON)

    return run


def _seen(pair: Pair, written: Any, begin: float, *, old: float) -> Seen:
    values = pair.hear()
    pending = not written.query()  # the answer was there before the write had run
    took = (time.perf_counter() - begin) * 1e3
    pair.torch.cuda.synchronize()
    return {"read": "new" if values == (_NEW, _NEW) else "old" if values == (old, old) else "other", "pending": pending, "answer_ms": took}


def _deleted(pair: Pair) -> Seen:
    """The tensor was complete before the put; the consumer gets it only after the sender's memory was written over, if it can be."""
    torch, queue = pair.torch, pair.queues[_QUEUE]
    tensor = torch.full((_COUNT,), _NEW, device="cuda")
    torch.cuda.synchronize()
    address = tensor.data_ptr()
    queue.put(tensor)
    del tensor
    time.sleep(0.05)  # the feeder thread pickles and drops its reference
    begin = time.perf_counter()
    others = [torch.full((_COUNT,), _OVER, device="cuda") for _ in range(16)]
    torch.cuda.synchronize()
    reused = any(other.data_ptr() == address for other in others)
    pair.ask_for(_QUEUE)
    values = pair.hear()
    read = "new" if values == (_NEW, _NEW) else "overwritten" if values == (_OVER, _OVER) else "other"
    return {"read": read, "pending": False, "answer_ms": (time.perf_counter() - begin) * 1e3, "reused": reused}


def _again(pair: Pair, *, hold: bool) -> Seen:
    """One buffer sent twice, each time from the stream that wrote it. ``hold``: the consumer still has its first view at the second."""
    torch, queue = pair.torch, pair.queues[_SIMPLE]
    tensor = pair.tensor(_OLD)
    pair.ask_for(_SIMPLE, hold=hold)
    queue.put(tensor)
    if pair.hear() != (_OLD, _OLD):
        raise RuntimeError("the first value arrived wrong")
    written = torch.cuda.Event()
    pair.ask_for(_SIMPLE)
    torch.cuda._sleep(pair.cycles)
    tensor.fill_(_NEW)
    written.record()
    begin = time.perf_counter()
    queue.put(tensor)
    return _seen(pair, written, begin, old=_OLD)


def _row(case: str, seen: Sequence[Seen]) -> Row:
    reads = [one["read"] for one in seen]
    row: Row = {"case": case, "runs": len(seen), **{read: reads.count(read) for read in ("new", *sorted(set(reads) - {"new"}))}}
    row |= {"answered_before_the_write": sum(one["pending"] for one in seen), "answer_ms": median((one["answer_ms"] for one in seen), 1)}
    return row | ({"memory_reused_before_the_read": sum(one["reused"] for one in seen)} if "reused" in seen[0] else {})


def answer(rows: Sequence[Row]) -> str:
    """How often each case arrived right."""
    texts = []
    for row in rows:
        if "runs" not in row:
            continue
        early = row["answered_before_the_write"]
        wrong = f", {early} answered while the write was still pending" if early else ""
        reused = row.get("memory_reused_before_the_read")
        again = "" if reused is None else f", the memory was used again before the read in {reused}"
        texts.append(f"{row['case']}: {row['new']} of {row['runs']} right{wrong}{again}")
    held = find(rows, case="facts").get("hold_ms", "?")
    return f"With the write held for {held} ms: " + "; ".join(texts) + "." if texts else "no answer: nothing was measured"
