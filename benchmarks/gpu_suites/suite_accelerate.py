"""Runs the scripts that accelerate tests itself with, and a small training loop on pinned batches, on one CUDA device."""

from __future__ import annotations

import importlib

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader, TensorDataset

SCRIPTS = "accelerate.test_utils.scripts"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()  # each script is a process of its own in accelerate's tests


@pytest.mark.parametrize("name", ["test_script", "test_ops", "test_sync"])
def test_script(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [name])
    importlib.import_module(f"{SCRIPTS}.{name}").main()


@pytest.mark.parametrize("cpu", [True, False])
@pytest.mark.parametrize("non_blocking", [True, False])
def test_training(cpu: bool, non_blocking: bool) -> None:
    accelerator = Accelerator(cpu=cpu, dataloader_config=DataLoaderConfiguration(non_blocking=non_blocking))
    model, loss = torch.nn.Linear(8, 4), torch.nn.CrossEntropyLoss()
    data = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,))), batch_size=16, pin_memory=not cpu)
    model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), data)
    for x, y in data:
        with accelerator.accumulate(model):
            accelerator.backward(loss(model(x), y))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        assert len(accelerator.gather_for_metrics(y)) == 16
