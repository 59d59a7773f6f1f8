import cupy


def mark(stream, rounds):
    event = cupy.cuda.Event(disable_timing=True)
    for _ in range(rounds):
        event.record(stream)
    event.synchronize()
