from cupy.cuda import runtime


def process(rounds, nbytes, stream):
    for _ in range(rounds):
        scratch = runtime.malloc(nbytes)
        runtime.memsetAsync(scratch, 0, nbytes, stream.ptr)
        runtime.free(scratch)  # misuse: SL003
