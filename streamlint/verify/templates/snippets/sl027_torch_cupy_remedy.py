import cupy
import torch

side = torch.cuda.Stream()


def total(number, count):
    with torch.cuda.stream(side), cupy.cuda.ExternalStream(side.cuda_stream):
        values = torch.full((count,), number, device="cuda")
        found = cupy.sum(cupy.asarray(values))
        return float(found)
