import torch


def total(value, first, second):
    ready = torch.cuda.Event()
    second.wait_event(ready)  # misuse: SL018
    with torch.cuda.stream(first):
        filled = torch.full((1024,), value, device="cuda")
        ready.record()
    with torch.cuda.stream(second):
        return filled.sum().item()
