import threading

import cupy

lock = threading.Lock()
finished = []


def flush(name):
    stream = cupy.cuda.Stream(non_blocking=True)

    def on_done(job):
        with lock:  # misuse: SL004
            finished.append(job)

    with lock:
        stream.launch_host_func(on_done, name)
        stream.synchronize()
