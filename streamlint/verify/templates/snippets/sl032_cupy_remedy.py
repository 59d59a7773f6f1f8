import cupy


def total(value, first, second):
    ready = cupy.cuda.Event(disable_timing=True)
    with first:
        filled = cupy.full(1024, value, dtype=cupy.float32)
        ready.record()
    with second:
        second.wait_event(ready)
        return float(filled.sum())
