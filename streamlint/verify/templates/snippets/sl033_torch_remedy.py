import cupy
import torch

side = torch.cuda.Stream()
finished = []


def checkpoint(file):
    outer = cupy.cuda.ExternalStream(side.cuda_stream)
    with torch.cuda.stream(side):
        rows = torch.ones(1024, device="cuda")
        outer.launch_host_func(finished.append, "batch")
        torch.save(rows.cpu(), file)
