import cupy
import torch

side = torch.cuda.Stream()


def total(number, count):
    with torch.cuda.stream(side):
        values = torch.full((count,), number, device="cuda")
        found = cupy.sum(cupy.asarray(values))  # misuse: SL027
    return float(found)
