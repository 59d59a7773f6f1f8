"""What the recorder of `streamlint trace` costs: a training step of about 2,000 calls, recorded and not, in turns in one process.

    python benchmarks/trace_overhead.py [SECONDS [SHARE]] > overhead.json     (needs a GPU and PyTorch)

The speed of a host changes by the second, so each recorded part is held against the mean of the plain ones before and behind it, and the
median of these quotients is what counts. With a share below 1 (`record(..., share=0.25)`) a part is all steps of the second turn of
the recorder, in which CUPTI comes back and leaves, and its time is their mean.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

import streamlint
from streamlint.trace.readers import recorded
from streamlint.trace.recording.parts import PART

STEPS, WARM = 6, 2  # of each part


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count, length, width = x.shape
        parts = self.all(self.before(x)).view(count, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(*parts)
        x = x + self.out(seen.transpose(1, 2).reshape(count, length, width))
        return x + self.wide(self.after(x))


def training() -> Callable[[], float]:
    """A step of a transformer of 40 layers, small enough for the host to be what takes the time; it gives the milliseconds it took."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(1000, 256), *(Block(256) for _ in range(40)), nn.Linear(256, 1000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, foreach=True)
    tokens = torch.randint(0, 1000, (8, 128), device="cuda")

    def step() -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        return (time.perf_counter() - start) * 1000

    return step


def whole(step: Callable[[], float]) -> float:
    for _ in range(WARM):
        step()
    return statistics.median(step() for _ in range(STEPS))


def turn(step: Callable[[], float], share: float) -> float:
    """The mean of the steps of as long as the recorder records once and is away once."""
    times: list[float] = []
    begun = time.perf_counter()
    while time.perf_counter() < begun + PART / share:
        times.append(step())
    return statistics.mean(times)


def measured(seconds: float, share: float = 1.0) -> dict[str, Any]:
    step = training()
    for _ in range(10):
        step()
    part = whole if share == 1 else partial(turn, share=share)
    plain, with_recorder = [part(step)], []
    until = time.perf_counter() + seconds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.slt"
        while time.perf_counter() < until:
            with streamlint.record(path, root=Path(__file__).parent, share=share):
                if share < 1:
                    part(step)  # CUPTI comes back in the next turn
                with_recorder.append(part(step))
            plain.append(part(step))
        trace = recorded.read(path)
    more = [2 * one / (before + after) - 1 for one, before, after in zip(with_recorder, plain, plain[1:], strict=False)]
    lower, middle, upper = statistics.quantiles(more, n=4)
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    return {
        "on": {
            "gpu": torch.cuda.get_device_name(),
            "driver": driver.stdout.strip(),
            "date": time.strftime("%Y-%m-%d"),
            "python": sys.version.split()[0],
            "torch": torch.__version__,
        },
        "share": share,
        **({"calls of a step": round(len(trace.calls) / (STEPS + WARM))} if share == 1 else {"notes of the last": trace.notes}),
        "longer": {"median": round(middle, 3), "quartiles": [round(lower, 3), round(upper, 3)]},
        "parts": len(more),
        "milliseconds, plain": [round(one, 1) for one in plain],
        "milliseconds, recorded": [round(one, 1) for one in with_recorder],
    }


if __name__ == "__main__":
    print(json.dumps(measured(*(map(float, sys.argv[1:]) if sys.argv[1:] else (40.0,))), indent=1))
