import ctypes

from cuda.bindings import runtime as cudart

H2D = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
D2H = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost


def uploaded(target, message, stream):
    _, staging = cudart.cudaHostAlloc(len(message), cudart.cudaHostAllocDefault)
    ctypes.memmove(staging, message, len(message))
    cudart.cudaMemcpyAsync(target, staging, len(message), H2D, stream)
    ctypes.memset(staging, 0, len(message))  # misuse: SL008
    cudart.cudaStreamSynchronize(stream)
    cudart.cudaMemcpy(staging, target, len(message), D2H)
    arrived = ctypes.string_at(staging, len(message))
    cudart.cudaFreeHost(staging)
    return arrived
