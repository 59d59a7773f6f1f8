from cuda.bindings import runtime as cudart


def run(rounds, size, stream):
    for _ in range(rounds):
        _, scratch = cudart.cudaMallocAsync(size, stream)  # misuse: SL040
        cudart.cudaMemsetAsync(scratch, 0, size, stream)
        cudart.cudaFreeAsync(scratch, stream)
        cudart.cudaStreamSynchronize(stream)
