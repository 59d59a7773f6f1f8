import torch
from numba import cuda

side = torch.cuda.Stream()


@cuda.jit
def double(out, values):
    i = cuda.grid(1)
    if i < values.size:
        out[i] = 2.0 * values[i]


def total(value, count):
    doubled = torch.empty(count, device="cuda")
    with torch.cuda.stream(side):
        filled = torch.full((count,), value, device="cuda")
        double[(count + 255) // 256, 256](cuda.as_cuda_array(doubled), cuda.as_cuda_array(filled))  # misuse: SL027
    torch.cuda.synchronize()
    return doubled.sum().item()
