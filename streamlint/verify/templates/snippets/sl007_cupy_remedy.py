import cupy as cp


def copied(value, count, first, second):
    kept = cp.empty(count, dtype=cp.float32)
    with first:
        numbers = cp.full(count, value, dtype=cp.float32)
    second.wait_event(first.record())
    with second:
        cp.copyto(kept, numbers)
    first.wait_event(second.record())
    del numbers
    with first:
        cp.full(count, -1.0, dtype=cp.float32)
    second.synchronize()
    return float(kept[-1])
