import numpy as np
from numba import cuda


@cuda.jit
def clear(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = 0.0


def process(rounds, count, stream):
    scratch = cuda.device_array(count, dtype=np.float32)
    for _ in range(rounds):
        clear[64, 256, stream](scratch)
