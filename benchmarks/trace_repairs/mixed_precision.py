"""Mixed precision with a GradScaler: the scheduler goes on only if the scale has not shrunk. The host scales the next batch meanwhile."""

import numpy
import torch
from torch import nn


def make():
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(4096, 4096), nn.GELU())], nn.Linear(4096, 100)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
    scaler = torch.amp.GradScaler("cuda")
    random = numpy.random.default_rng(0)
    data = random.standard_normal((1024, 4096), dtype=numpy.float32), torch.randint(0, 100, (8192,), device="cuda")
    return model, optimizer, scheduler, scaler, data


def run(made, steps=40):
    model, optimizer, scheduler, scaler, (rows, labels) = made
    before = scaler.get_scale()
    for step in range(steps):
        batch = torch.from_numpy(rows * numpy.float32(1 + step / steps)).pin_memory().to("cuda", non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = nn.functional.cross_entropy(model(batch.repeat(8, 1)), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        now = scaler.get_scale()  # STALL
        # REPAIR now = before
        if now >= before:
            scheduler.step()
        before = now
    return loss.item()


if __name__ == "__main__":
    print(run(make()))
