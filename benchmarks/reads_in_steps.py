"""What one read of a number adds to a training step, by where it stands: before the backward pass, behind the step of an optimizer, or
behind that of a `GradScaler`, which itself waits for the gradients.

    python benchmarks/reads_in_steps.py > benchmarks/reads_in_steps.json     (needs a GPU and PyTorch)

Each pass is 12 steps and a wait for the device. All forms of a step run in turns in one process; a pass is held against the one without
a read of the same turn, and the median and the quartiles of these quotients are what counts.
"""

from __future__ import annotations

import datetime
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import nn

STEPS, WARM, TURNS = 12, 3, 40
PLACES = ("none", "before backward", "behind the step", "scale behind the step")


class Work(NamedTuple):
    """A model with what it is trained on."""

    model: nn.Module
    x: torch.Tensor
    y: torch.Tensor


def transformer() -> Work:
    """Six layers, small enough for the host to be what takes the time."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 6), nn.Flatten(), nn.Linear(256 * 64, 10)).cuda()
    return Work(model, torch.randn(16, 64, 256, device="cuda"), torch.randint(0, 10, (16,), device="cuda"))


def convolutions() -> Work:
    """Eight convolutions over large images: the device is what takes the time."""
    parts: list[nn.Module] = [nn.Conv2d(3, 64, 3, padding=1)]
    for _ in range(7):
        parts += [nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)]
    model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()
    return Work(model, torch.randn(32, 3, 96, 96, device="cuda"), torch.randint(0, 10, (32,), device="cuda"))


def training(work: Work, scaled: bool, place: str) -> Callable[[], float]:
    """A pass of a form; it gives the milliseconds that a step took."""
    optimizer = torch.optim.AdamW(work.model.parameters(), 1e-5)
    scaler = torch.amp.GradScaler("cuda", enabled=scaled)
    total = 0.0

    def step() -> None:
        nonlocal total
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16, enabled=scaled):
            loss = nn.functional.cross_entropy(work.model(work.x), work.y)
        if place == "before backward":
            total += loss.item()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if place == "behind the step":
            total += loss.item()
        if place == "scale behind the step":
            total += scaler.get_scale()

    def run() -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / STEPS * 1e3

    return run


def figures(work: Work) -> Iterator[tuple[str, dict[str, object]]]:
    """The milliseconds of a step without a read, and what each read adds to it."""
    for scaled in (False, True):
        forms = {place: training(work, scaled, place) for place in PLACES[: None if scaled else 3]}
        for run in forms.values():
            for _ in range(WARM):
                run()
        turns = [{place: run() for place, run in forms.items()} for _ in range(TURNS)]
        found: dict[str, object] = {"ms a step": round(statistics.median(turn["none"] for turn in turns), 3)}
        for place in forms.keys() - {"none"}:
            low, middle, high = statistics.quantiles((turn[place] / turn["none"] - 1 for turn in turns), n=4)
            found[place] = [round(middle, 4), round(low, 4), round(high, 4)]
        yield ("with a scaler" if scaled else "without"), dict(sorted(found.items()))


def main() -> None:
    """Measures and prints."""
    torch.manual_seed(0)
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=True
    )
    on = {
        "gpu": torch.cuda.get_device_name(),
        "driver": driver.stdout.split()[0],
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    how = f"{TURNS} turns of passes of {STEPS} steps; what a read adds, as a share of the step without: median and quartiles"
    made = {work.__name__: dict(figures(work())) for work in (transformer, convolutions)}
    json.dump({"on": on, "how": how, **made}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
