import cupy as cp


def read_back(losses, host, upstream):
    work = cp.cuda.Stream(non_blocking=True)
    work.wait_event(upstream.record())
    losses.get(stream=work, out=host, blocking=False)
    work.synchronize()
    return float(host.sum())
