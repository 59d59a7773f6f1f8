from numba import cuda


def upload(blocks, targets):
    for block, target in zip(blocks, targets, strict=True):
        stream = cuda.stream()  # misuse: SL029
        target.copy_to_device(block, stream=stream)
        stream.synchronize()
