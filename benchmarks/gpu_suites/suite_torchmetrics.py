"""Updates and computes metrics of torchmetrics, on the host and on a CUDA device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torchmetrics import CatMetric, ClasswiseWrapper, MeanMetric, Metric, MetricCollection, MinMaxMetric, SumMetric
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassCalibrationError,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
    MulticlassPrecisionRecallCurve,
)
from torchmetrics.functional import mean_absolute_error, pairwise_cosine_similarity
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
from torchmetrics.regression import CosineSimilarity, MeanSquaredError, PearsonCorrCoef, R2Score, SpearmanCorrCoef
from torchmetrics.retrieval import RetrievalMAP
from torchmetrics.text import Perplexity

CLASSES = 4


def run(metric: Any, device: str, *given: torch.Tensor) -> None:
    """Two updates, a result, and a fresh start."""
    metric = metric.to(device)
    for _ in range(2):
        metric.update(*(one.to(device) for one in given))
    metric.compute()
    metric(*(one.to(device) for one in given))
    metric.reset()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "metric",
    [
        MulticlassAccuracy,
        MulticlassAUROC,
        MulticlassCalibrationError,
        MulticlassConfusionMatrix,
        MulticlassF1Score,
        MulticlassPrecisionRecallCurve,
    ],
)
def test_classification(metric: type[Metric], device: str) -> None:
    made: Any = metric
    run(made(num_classes=CLASSES), device, torch.rand(16, CLASSES).softmax(1), torch.randint(0, CLASSES, (16,)))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("metric", [CosineSimilarity, MeanSquaredError, PearsonCorrCoef, R2Score, SpearmanCorrCoef])
def test_regression(metric: type[Metric], device: str) -> None:
    given = (torch.randn(16, 3), torch.randn(16, 3)) if metric is CosineSimilarity else (torch.randn(16), torch.randn(16))
    run(metric(), device, *given)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_others(device: str) -> None:
    for metric in (MeanMetric(), SumMetric(), CatMetric(), MinMaxMetric(MeanMetric())):
        run(metric, device, torch.randn(8))
    pictures = torch.rand(2, 3, 24, 24)
    run(PeakSignalNoiseRatio(data_range=1.0), device, pictures, pictures * 0.9)
    run(StructuralSimilarityIndexMeasure(data_range=1.0), device, pictures, pictures * 0.9)
    run(Perplexity(), device, torch.rand(2, 6, CLASSES), torch.randint(0, CLASSES, (2, 6)))
    run(RetrievalMAP(), device, torch.rand(8), torch.randint(0, 2, (8,)), torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_collections_and_functions(device: str) -> None:
    by_class = ClasswiseWrapper(MulticlassAccuracy(num_classes=CLASSES, average=None))
    both = MetricCollection({"by class": by_class, "score": MulticlassF1Score(num_classes=CLASSES)})
    run(both, device, torch.rand(16, CLASSES), torch.randint(0, CLASSES, (16,)))
    x, y = torch.randn(8, 3, device=device), torch.randn(8, 3, device=device)
    assert mean_absolute_error(x, y) >= 0
    assert pairwise_cosine_similarity(x, y).shape == (8, 8)
