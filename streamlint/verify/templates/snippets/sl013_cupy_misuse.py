import cupy


def record(values, out, stream):
    with stream:
        stream.begin_capture()
        try:
            cupy.multiply(values, 2, out=out)
            stream.synchronize()  # misuse: SL013
        finally:
            graph = stream.end_capture()
    return graph
