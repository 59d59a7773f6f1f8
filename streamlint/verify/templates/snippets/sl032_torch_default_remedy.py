import torch


def total(value, first, second):
    with torch.cuda.stream(first):
        filled = torch.full((1024,), value, device="cuda")
        second.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(second):
            return filled.sum().item()
