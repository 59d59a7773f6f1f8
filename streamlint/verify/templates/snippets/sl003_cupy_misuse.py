from cupy.cuda import runtime


def process(rounds, nbytes, stream):
    for _ in range(rounds):
        scratch = runtime.malloc(nbytes)  # misuse: SL003
        runtime.memsetAsync(scratch, 0, nbytes, stream.ptr)
        runtime.free(scratch)
