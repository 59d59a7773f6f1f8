"""What is advised about a wait: by what is waited for, and by what becomes of it."""

from __future__ import annotations

import pytest

from streamlint.config.options import Source
from streamlint.config.settings import Settings
from streamlint.runner import engine

LOOP = """import torch


def train(net, loader, optimizer):
    net.cuda()
    for x in loader:
        {}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
NET = "net(x.cuda()).sum()"


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        (f"loss = torch.tensor(0.0, device='cuda'); loss += {NET}", "fill a new tensor on the device"),
        (f"loss = torch.tensor(0.0, device='cuda'); loss.add_({NET})", "fill a new tensor on the device"),
        (f"loss = torch.tensor(0.0, device='cuda')\n        for _ in range(3): loss += {NET}", "fill a new tensor on the device"),
        (f"loss = torch.tensor(0.5, device='cuda'); loss = loss + {NET}", "create the tensor once before the loop"),
        (f"least = torch.tensor(0.5, device='cuda'); loss = torch.maximum({NET}, least)", "create the tensor once before the loop"),
        (f"loss = {NET}; print(loss.item())", "keep the detached tensor"),
        (f"loss = {NET}\n        if loss > 3: print('large')", "choose on the device"),
    ],
)
def test_advice(body: str, advice: str) -> None:
    (found,) = engine.analyse([Source("loop.py", LOOP.format(body), "python")], Settings().options()).findings
    assert found.help.startswith(advice)
