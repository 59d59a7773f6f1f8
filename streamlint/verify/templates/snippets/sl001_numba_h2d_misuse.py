import numpy as np
from numba import cuda


def upload(count, stream):
    host = np.ones(count, dtype=np.float32)
    device = cuda.to_device(host, stream=stream)  # misuse: SL001
    return device, host
