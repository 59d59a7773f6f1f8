import cupy


def read_loss(losses, host, stream):
    cupy.asnumpy(losses, stream=stream, out=host, blocking=False)
    stream.synchronize()
    return float(host.sum())
