from cuda.bindings import runtime as cudart

D2H = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost


def renew(host, value, first, second, event):
    _, old = cudart.cudaMallocAsync(host.nbytes, first)
    cudart.cudaMemsetAsync(old, 0, host.nbytes, first)
    cudart.cudaFreeAsync(old, first)

    _, rows = cudart.cudaMallocAsync(host.nbytes, first)
    cudart.cudaMemsetAsync(rows, value, host.nbytes, second)  # misuse: SL038
    cudart.cudaEventRecord(event, second)
    cudart.cudaStreamWaitEvent(first, event, 0)
    cudart.cudaMemcpyAsync(host.ctypes.data, rows, host.nbytes, D2H, first)
    cudart.cudaFreeAsync(rows, first)
    cudart.cudaStreamSynchronize(first)
    return int(host.sum())
