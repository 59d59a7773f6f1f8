import cupy


def total(value, first, second):
    ready = cupy.cuda.Event(disable_timing=True)
    second.wait_event(ready)  # misuse: SL018
    with first:
        filled = cupy.full(1024, value, dtype=cupy.float32)
        ready.record()
    with second:
        return float(filled.sum())
