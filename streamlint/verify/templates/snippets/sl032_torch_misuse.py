import torch


def total(value, first, second):
    with torch.cuda.stream(first):
        filled = torch.full((1024,), value, device="cuda")
        with torch.cuda.stream(second):
            second.wait_stream(torch.cuda.current_stream())  # misuse: SL032
            return filled.sum().item()
