"""Training of a classifier that reads its loss each step; the host distorts the next batch meanwhile."""

import numpy
import torch
from torch import nn


def make():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(3072, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    random = numpy.random.default_rng(0)
    return model, optimizer, random.standard_normal((512, 3072), dtype=numpy.float32), torch.randint(0, 10, (512,), device="cuda")


def distorted(images, step):
    return numpy.clip(numpy.roll(images, step, axis=1) * 0.9 + 0.05, -1.0, 1.0)


def run(made, steps=40):
    model, optimizer, images, labels = made
    running = 0.0
    for step in range(steps):
        batch = torch.from_numpy(distorted(images, step)).pin_memory().to("cuda", non_blocking=True)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()  # STALL
        # REPAIR running += loss.detach()
    return float(running)


if __name__ == "__main__":
    print(run(make()))
