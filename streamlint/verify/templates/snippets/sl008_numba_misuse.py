import numpy as np
from numba import cuda


def uploaded(out, value, stream):
    staging = cuda.pinned_array(1024, dtype=np.float32)
    staging[:] = value
    out.copy_to_device(staging, stream=stream)
    staging[:] = -1.0  # misuse: SL008
    stream.synchronize()
    return float(out.copy_to_host().sum())
