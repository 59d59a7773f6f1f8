import numpy as np
from numba import cuda


@cuda.jit
def fill(out, value):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = value


def total(host, value, first, second):
    out = cuda.device_array(1024, dtype=np.float32)
    fill[4, 256, first](out, value)
    filled = cuda.event(timing=False)
    filled.record(first)
    filled.wait(second)
    out.copy_to_host(host, stream=second)
    second.synchronize()
    return float(np.sum(host))
