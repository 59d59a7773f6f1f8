import cupy as cp


def filled(value, count, stream):
    with stream:
        numbers = cp.full(count, -1.0, dtype=cp.float32)
        result = cp.empty(count, dtype=cp.float32)
        stream.begin_capture()
        more = numbers + 1  # misuse: SL034
        cp.multiply(more, 2, out=result)
        graph = stream.end_capture()
        del more
        other = cp.full(count, value, dtype=cp.float32)
        graph.launch(stream)
    stream.synchronize()
    return float(other[-1])
