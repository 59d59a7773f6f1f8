from cupy.cuda import runtime


def process(rounds, nbytes, stream):
    for _ in range(rounds):
        scratch = runtime.mallocAsync(nbytes, stream.ptr)  # misuse: SL040
        runtime.memsetAsync(scratch, 0, nbytes, stream.ptr)
        runtime.freeAsync(scratch, stream.ptr)
        stream.synchronize()
