import ctypes

import cupy

driver = ctypes.PyDLL("libcuda.so.1")
stream = cupy.cuda.Stream(non_blocking=True)
finished = []


def flush(rows):
    with stream:
        rows *= 2
    stream.launch_host_func(finished.append, "batch")
    driver.cuStreamSynchronize(ctypes.c_void_p(stream.ptr))  # misuse: SL033
