import numpy as np
from numba import cuda


def collect(count, stream, results):
    device = cuda.device_array(count, dtype=np.float32)

    def on_done(stream, status, arg):
        results.append(device.copy_to_host())  # misuse: SL004

    stream.add_callback(on_done)
    stream.synchronize()
