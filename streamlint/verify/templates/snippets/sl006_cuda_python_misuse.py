from cuda.bindings import runtime as cudart

D2D = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice
D2H = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost


def pass_on(source, between, host, first, second):
    cudart.cudaMemcpyAsync(between, source, host.nbytes, D2D, first)
    cudart.cudaMemcpyAsync(host.ctypes.data, between, host.nbytes, D2H, second)  # misuse: SL006
    cudart.cudaStreamSynchronize(second)
    return float(host.sum())
