import cupy


def record(values, out, stream):
    with stream:
        stream.begin_capture()
        try:
            cupy.multiply(values, 2, out=out)
        finally:
            graph = stream.end_capture()
    stream.synchronize()
    return graph
