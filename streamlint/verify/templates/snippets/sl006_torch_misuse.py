import torch


def total(value, stream):
    with torch.cuda.stream(stream):
        filled = torch.full((1024,), value, device="cuda")
    return filled.sum().item()  # misuse: SL006
