"""Training with clipped gradients, and an error if they are not finite; the host mixes the next batch meanwhile."""

import numpy
import torch
from torch import nn


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2048, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 1000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    random = numpy.random.default_rng(0)
    return model, optimizer, random.standard_normal((1024, 2048), dtype=numpy.float32), torch.randint(0, 1000, (1024,), device="cuda")


def mixed(rows, share):
    return share * rows + (1.0 - share) * rows[::-1]


def run(made, steps=40):
    model, optimizer, rows, labels = made
    for step in range(steps):
        batch = torch.from_numpy(mixed(rows, numpy.float32(step / steps))).pin_memory().to("cuda", non_blocking=True)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # STALL
        # REPAIR nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    print(run(make()))
