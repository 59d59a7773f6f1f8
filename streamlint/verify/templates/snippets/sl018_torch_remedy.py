import torch


def total(value, first, second):
    ready = torch.cuda.Event()
    with torch.cuda.stream(first):
        filled = torch.full((1024,), value, device="cuda")
        ready.record()
    second.wait_event(ready)
    with torch.cuda.stream(second):
        return filled.sum().item()
