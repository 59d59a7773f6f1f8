from cupy.cuda import runtime


def renew(host, value, first, second):
    old = runtime.mallocAsync(host.nbytes, first.ptr)
    runtime.memsetAsync(old, 0, host.nbytes, first.ptr)
    runtime.freeAsync(old, first.ptr)

    rows = runtime.mallocAsync(host.nbytes, first.ptr)
    second.wait_event(first.record())
    runtime.memsetAsync(rows, value, host.nbytes, second.ptr)
    first.wait_event(second.record())
    runtime.memcpyAsync(host.ctypes.data, rows, host.nbytes, runtime.memcpyDeviceToHost, first.ptr)
    runtime.freeAsync(rows, first.ptr)
    first.synchronize()
    return int(host.sum())
