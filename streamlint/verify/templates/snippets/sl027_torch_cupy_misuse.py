import cupy
import torch


def total(values, number, stream):
    with torch.cuda.stream(stream):
        values.fill_(number)
        found = cupy.sum(cupy.asarray(values))  # misuse: SL027
    return float(found)
