"""Findings in released packages, run on a GPU: the package's own code as it was released, and with the repair of the field notes.

A module here is one package. It names the release, what is wrong, and gives ``run(tree)``: the outcomes by place, each with the released
code and the repaired one side by side. Nothing of the package is changed but the lines of the repair; where something had to stand in for
a part that needs more than the package, ``STANDS_IN`` says what. Where `docs/reports` has a report, its patch is the repair.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = (
    "anomalib",
    "audiocraft",
    "colbert_ai",
    "deepspeed",
    "espnet",
    "fairscale",
    "gptqmodel",
    "mmcv",
    "monai",
    "nemo_toolkit",
    "nvidia_modelopt",
    "peft",
    "pytorch_optimizer",
    "skrl",
    "stable_baselines3",
    "super_gradients",
    "torch_cluster",
    "torch_geometric",
    "torch_points_kernels",
)


def replaced(text: str, changes: Mapping[str, str]) -> str:
    """The text with the repair in it. Raises ValueError where a line of the release is not there."""
    for old, new in changes.items():
        if old not in text:
            raise ValueError(f"not in this release: {old!r}")
        text = text.replace(old, new)
    return text


def repaired(module: ModuleType, changes: Mapping[str, str]) -> ModuleType:
    """A second copy of an imported module, made from its source with the repair in it."""
    path = Path(str(module.__file__))
    name = f"{module.__name__}_repaired"
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(path))
    assert spec is not None
    copy = importlib.util.module_from_spec(spec)
    copy.__package__ = module.__package__
    copy.__file__ = str(path)
    sys.modules[name] = copy
    exec(compile(replaced(path.read_text(encoding="utf-8"), changes), str(path), "exec"), copy.__dict__)
    return copy


def busy(torch: Any, rounds: int = 20) -> None:
    """Matrix products on the current stream: about 1.4 ms each on an H200."""
    size = 8192
    one = getattr(busy, "operand", None)
    if one is None:
        one = torch.ones(size, size, device="cuda", dtype=torch.bfloat16)
        busy.operand = one  # type: ignore[attr-defined]
        torch.cuda.synchronize()
    for _ in range(rounds):
        one @ one


def wrong_of(trial: Callable[[], bool], trials: int = 20) -> dict[str, Any]:
    """How many trials gave a wrong result. One that raises is wrong, and its error is kept."""
    wrong, errors = 0, set()
    for _ in range(trials):
        try:
            wrong += trial()
        except RuntimeError as error:
            wrong += 1
            errors.add(str(error).splitlines()[0][:120])
    return {"wrong": wrong, "trials": trials, **({"errors": sorted(errors)} if errors else {})}


def milliseconds(torch: Any, released: Callable[[], int], mended: Callable[[], int], rounds: int = 9) -> dict[str, Any]:
    """Time a step of both, in turn, until the GPU has ended: median, least and most of the rounds. A callable gives its number of steps."""
    taken: dict[str, list[float]] = {"released": [], "repaired": []}
    for call in (released, mended):
        call()
    for _ in range(rounds):
        for name, call in (("released", released), ("repaired", mended)):
            torch.cuda.synchronize()
            start = time.perf_counter()
            steps = call()
            torch.cuda.synchronize()
            taken[name].append((time.perf_counter() - start) / steps * 1e3)
    return {
        name: {"ms_a_step": round(statistics.median(each), 4), "least": round(min(each), 4), "most": round(max(each), 4)}
        for name, each in taken.items()
    }
