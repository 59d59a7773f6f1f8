from cuda.bindings import runtime as cudart


def run(rounds, size, stream):
    for _ in range(rounds):
        _, scratch = cudart.cudaMalloc(size)  # misuse: SL003
        cudart.cudaMemsetAsync(scratch, 0, size, stream)
        cudart.cudaFree(scratch)
