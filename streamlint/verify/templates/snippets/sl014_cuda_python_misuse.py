from cuda.bindings import runtime as cudart

D2H = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost


def read_back(losses, host, upstream):
    _, work = cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)
    _, ready = cudart.cudaEventCreateWithFlags(cudart.cudaEventDisableTiming)
    cudart.cudaEventRecord(ready, upstream)
    cudart.cudaStreamWaitEvent(work, ready, 0)
    cudart.cudaMemcpyAsync(host.ctypes.data, losses, host.nbytes, D2H, work)
    cudart.cudaStreamSynchronize(0)  # misuse: SL014
    value = float(host.sum())
    cudart.cudaStreamSynchronize(work)
    return value
