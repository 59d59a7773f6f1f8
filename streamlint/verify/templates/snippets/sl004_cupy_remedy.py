import threading

import cupy


def collect(values, stream, results):
    done = threading.Event()

    def on_done(_):
        done.set()

    stream.launch_host_func(on_done, None)
    done.wait()
    with stream:
        results.append(cupy.sum(values))
