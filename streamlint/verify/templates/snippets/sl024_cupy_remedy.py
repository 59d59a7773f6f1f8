import cupy


def wait_for(stream):
    event = cupy.cuda.Event(block=True, disable_timing=True)
    event.record(stream)
    event.synchronize()
