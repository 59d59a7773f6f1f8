from cuda.bindings import runtime as cudart


def run(rounds, size, stream):
    _, scratch = cudart.cudaMallocAsync(size, stream)
    for _ in range(rounds):
        cudart.cudaMemsetAsync(scratch, 0, size, stream)
        cudart.cudaStreamSynchronize(stream)
    cudart.cudaFreeAsync(scratch, stream)
