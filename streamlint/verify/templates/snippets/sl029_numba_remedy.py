from numba import cuda


def upload(blocks, targets):
    stream = cuda.stream()
    for block, target in zip(blocks, targets, strict=True):
        target.copy_to_device(block, stream=stream)
        stream.synchronize()
