import cupy


def total(value, first, second):
    ready = cupy.cuda.Event(disable_timing=True)
    with first:
        filled = cupy.full(1024, value, dtype=cupy.float32)
    with second:
        ready.record()
        second.wait_event(ready)  # misuse: SL032
        return float(filled.sum())
