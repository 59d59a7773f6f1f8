import threading

import cupy


def total(values, stream):
    sums = []

    def add_up():
        sums.append(cupy.sum(values))

    with stream:
        cupy.add(values, 1.0, out=values)
        worker = threading.Thread(target=add_up)
        worker.start()  # misuse: SL026
    worker.join()
    stream.synchronize()
    return float(sums[0])
