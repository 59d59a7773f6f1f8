import threading

import cupy


def device_of_work(count):
    found = []

    def work():
        values = cupy.ones(count, dtype=cupy.float32)  # misuse: SL035
        found.append(values.device.id)

    with cupy.cuda.Device(1):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    return found[0]
