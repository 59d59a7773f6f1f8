import cupy as cp


def total(value, first, second):
    with first:
        filled = cp.full(1024, value, dtype=cp.float32)
    with second:
        summed = filled.sum()  # misuse: SL006
        return float(summed)
