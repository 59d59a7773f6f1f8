"""Validation whose batches come from pageable memory. The count of right answers is read for each batch in either case."""

import torch
from torch import nn


def make():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, stride=8),
        nn.ReLU(),
        *[layer for _ in range(4) for layer in (nn.Conv2d(64, 64, 3, padding=1), nn.ReLU())],
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    ).cuda()
    images = [torch.randn(128, 3, 128, 128) for _ in range(6)]
    # REPAIR images = [one.pin_memory() for one in images]
    return model, [(one, torch.randint(0, 10, (128,), device="cuda")) for one in images]


def run(made, rounds=5):
    model, batches = made
    right = 0
    with torch.no_grad():
        for _ in range(rounds):
            for images, labels in batches:
                images = images.to("cuda")  # STALL
                # REPAIR images = images.to("cuda", non_blocking=True)
                right += (model(images).argmax(1) == labels).sum().item()
    return right


if __name__ == "__main__":
    print(run(make()))
