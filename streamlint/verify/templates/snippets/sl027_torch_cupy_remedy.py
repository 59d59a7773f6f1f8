import cupy
import torch


def total(values, number, stream):
    with torch.cuda.stream(stream), cupy.cuda.ExternalStream(stream.cuda_stream):
        values.fill_(number)
        found = cupy.sum(cupy.asarray(values))
        return float(found)
