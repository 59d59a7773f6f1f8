"""Trains and evaluates small models with pytorch-ignite, on the host and on a CUDA device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, EMAHandler, TerminateOnNan
from ignite.metrics import (
    Accuracy,
    Average,
    ConfusionMatrix,
    Loss,
    MeanSquaredError,
    Precision,
    Recall,
    RunningAverage,
    TopKCategoricalAccuracy,
)
from ignite.utils import convert_tensor, to_onehot
from torch.utils.data import DataLoader, TensorDataset


def batches(pinned: bool) -> DataLoader[Any]:
    """Batches of points and classes."""
    return DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,))), batch_size=16, pin_memory=pinned)


@pytest.mark.parametrize(("device", "pinned"), [("cpu", False), ("cuda", False), ("cuda", True)])
@pytest.mark.parametrize("deterministic", [False, True])
def test_training(device: str, pinned: bool, deterministic: bool) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(device)
    optimizer, criterion = torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(
        model, optimizer, criterion, device=device, non_blocking=pinned, gradient_accumulation_steps=2, deterministic=deterministic
    )
    counts: dict[str, Any] = {
        "accuracy": Accuracy(device=device),
        "loss": Loss(criterion, device=device),
        "top": TopKCategoricalAccuracy(2),
    }
    counts |= {"precision": Precision(device=device), "recall": Recall(average=True), "matrix": ConfusionMatrix(4, device=device)}
    evaluator = create_supervised_evaluator(model, metrics=counts, device=device, non_blocking=pinned)
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "running")
    EMAHandler(model, momentum=0.01).attach(trainer)
    trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
    evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer))
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(batches(pinned)))
    trainer.run(batches(pinned), max_epochs=2)
    assert 0 <= evaluator.state.metrics["accuracy"] <= 1


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_metrics_and_helpers(device: str) -> None:
    values, wanted = torch.randn(16, device=device), torch.randn(16, device=device)
    average, error = Average(device=device), MeanSquaredError(device=device)
    for value, other in zip(values.split(4), wanted.split(4), strict=True):
        average.update(value.mean())
        error.update((value, other))
    assert error.compute() >= 0
    assert float(average.compute()) == pytest.approx(values.mean().item(), abs=1e-5)
    assert to_onehot(torch.tensor([1, 2], device=device), 4).shape == (2, 4)
    assert convert_tensor({"x": [values.cpu()]}, device=device, non_blocking=True)["x"][0].device.type == device
    assert Engine(lambda engine, batch: batch.sum()).run([values], max_epochs=1).output is not None
