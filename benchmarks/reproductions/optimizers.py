"""Optimizers that fetch numbers for each parameter: the time of a training step as released, and with the patch of the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import milliseconds
from .reports import module_of

STEPS = 10


def model(torch: Any, layers: int, width: int) -> Any:
    """A transformer's encoder: twelve parameters a layer."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).cuda()


def agree(torch: Any, made: Any, repaired: Any) -> None:
    """Five steps on the processor must end with the same parameters. Raises RuntimeError where they do not."""
    kept = []
    for optimizer in (made, repaired):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        stepping = optimizer(net.parameters())
        for _ in range(5):
            stepping.zero_grad()
            net(torch.ones(2, 8)).square().mean().backward()
            stepping.step()
        kept.append([parameter.detach() for parameter in net.parameters()])
    if not all(torch.allclose(*pair, rtol=1e-4, atol=1e-6) for pair in zip(*kept, strict=True)):
        raise RuntimeError("the repaired optimizer computes something else")


def compared(tree: Path, path: str, name: str, report: str, place: str, package: str = "", **options: Any) -> dict[str, Any]:
    """Training steps (forward, backward, optimizer) of a network of 24 layers of 1,024, and of one of 12 layers of 256."""
    import torch

    released, repaired = (getattr(module_of(tree, path, *names, package=package), name) for names in ((), (report,)))
    agree(torch, lambda given: released(given, **options), lambda given: repaired(given, **options))
    outcomes = {}
    for layers, width in ((24, 1024), (12, 256)):
        batch = torch.rand(8, 128, width, device="cuda")

        def training(optimizer: Any, layers: int = layers, width: int = width, batch: Any = batch) -> Any:
            net = model(torch, layers, width)
            stepping = optimizer(net.parameters(), **options)

            def steps() -> int:
                for _ in range(STEPS):
                    stepping.zero_grad()
                    net(batch).square().mean().backward()
                    stepping.step()
                return STEPS

            return steps

        outcomes[f"{place} {layers} layers of {width}"] = milliseconds(torch, training(released), training(repaired))
    return outcomes
