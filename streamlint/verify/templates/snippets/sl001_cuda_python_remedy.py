from cuda.bindings import runtime as cudart


def upload(target, count, stream):
    _, batch = cudart.cudaHostAlloc(4 * count, cudart.cudaHostAllocDefault)
    cudart.cudaMemcpyAsync(target, batch, 4 * count, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, stream)
    return batch
