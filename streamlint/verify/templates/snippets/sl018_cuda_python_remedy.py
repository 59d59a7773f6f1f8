from cuda.bindings import runtime as cudart

D2D = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice
D2H = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost


def pass_on(source, between, host, first, second):
    cudart.cudaMemcpyAsync(between, source, host.nbytes, D2D, first)
    _, written = cudart.cudaEventCreateWithFlags(cudart.cudaEventDisableTiming)
    cudart.cudaEventRecord(written, first)
    cudart.cudaStreamWaitEvent(second, written, 0)
    cudart.cudaMemcpyAsync(host.ctypes.data, between, host.nbytes, D2H, second)
    cudart.cudaStreamSynchronize(second)
    cudart.cudaEventDestroy(written)
    return float(host.sum())
