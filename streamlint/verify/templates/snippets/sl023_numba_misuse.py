from numba import cuda


def mark(stream, rounds):
    event = cuda.event()  # misuse: SL023
    for _ in range(rounds):
        event.record(stream)
    event.synchronize()
