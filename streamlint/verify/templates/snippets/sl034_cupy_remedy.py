import cupy as cp


def doubled(value, count, stream):
    with stream:
        numbers = cp.zeros(count, dtype=cp.float32)
        result = cp.empty(count, dtype=cp.float32)
        stream.begin_capture()
        cp.multiply(numbers, 2, out=result)
        graph = stream.end_capture()
        numbers.fill(value)
        graph.launch(stream)
    stream.synchronize()
    return float(result[-1])
