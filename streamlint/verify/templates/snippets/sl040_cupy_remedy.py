from cupy.cuda import runtime


def process(rounds, nbytes, stream):
    pool = runtime.deviceGetDefaultMemPool(0)
    runtime.memPoolSetAttribute(pool, runtime.cudaMemPoolAttrReleaseThreshold, 2**40)
    for _ in range(rounds):
        scratch = runtime.mallocAsync(nbytes, stream.ptr)
        runtime.memsetAsync(scratch, 0, nbytes, stream.ptr)
        runtime.freeAsync(scratch, stream.ptr)
        stream.synchronize()
