import cupy


def transform(blocks):
    for block in blocks:
        stream = cupy.cuda.Stream(non_blocking=True)  # misuse: SL029
        with stream:
            block *= 2
        stream.synchronize()
