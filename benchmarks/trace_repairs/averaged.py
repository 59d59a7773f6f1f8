"""Training with a moving average of the weights, and meters that are updated each step. The host draws the next batch meanwhile."""

import copy

import numpy
import torch
from torch import nn


class Meter:
    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value):
        self.sum += value
        self.count += 1


def make():
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(3) for layer in (nn.Linear(4096, 4096), nn.ReLU())], nn.Linear(4096, 100)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    shadow = copy.deepcopy(model)
    rows = numpy.random.default_rng(0).standard_normal((2048, 4096), dtype=numpy.float32)
    return model, shadow, optimizer, rows, torch.randint(0, 100, (1024,), device="cuda")


def run(made, steps=30):
    model, shadow, optimizer, rows, labels = made
    random = numpy.random.default_rng(1)
    losses, rights = Meter(), Meter()
    for _ in range(steps):
        chosen = rows[random.integers(0, len(rows), len(labels))]
        scores = model(torch.from_numpy(chosen).pin_memory().to("cuda", non_blocking=True))
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(shadow.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.01)
            right = (scores.argmax(1) == labels).float().mean()
        losses.update(loss.item()), rights.update(right.item())  # STALL
        # REPAIR losses.update(loss.detach()), rights.update(right)
    return float(losses.sum / losses.count), float(rights.sum / rights.count)


if __name__ == "__main__":
    print(run(make()))
