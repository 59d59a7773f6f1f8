import cupy
import numpy as np


def upload(count, stream):
    host = np.ones(count, dtype=np.float32)
    device = cupy.empty(count, dtype=cupy.float32)
    device.set(host, stream=stream)  # misuse: SL001
    return device, host
