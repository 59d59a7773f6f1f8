from cupy.cuda import runtime


def renew(host, value, first, second, event):
    old = runtime.mallocAsync(host.nbytes, first)
    runtime.memsetAsync(old, 0, host.nbytes, first)
    runtime.freeAsync(old, first)

    rows = runtime.mallocAsync(host.nbytes, first)
    runtime.eventRecord(event, first)
    runtime.streamWaitEvent(second, event, 0)
    runtime.memsetAsync(rows, value, host.nbytes, second)
    runtime.eventRecord(event, second)
    runtime.streamWaitEvent(first, event, 0)
    runtime.memcpyAsync(host.ctypes.data, rows, host.nbytes, runtime.memcpyDeviceToHost, first)
    runtime.freeAsync(rows, first)
    runtime.streamSynchronize(first)
    return int(host.sum())
