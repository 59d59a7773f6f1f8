import numpy as np
from cuda.bindings import runtime as cudart


def upload(target, count, stream):
    batch = np.ones(count, dtype=np.float32)
    cudart.cudaMemcpyAsync(target, batch.ctypes.data, batch.nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, stream)  # misuse: SL001
    return batch
