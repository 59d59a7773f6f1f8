import threading

import cupy
import cupyx


def bring_home(field):
    home = cupyx.empty_pinned(field.shape, dtype=field.dtype)
    field.get(out=home, blocking=False)
    cupy.cuda.get_current_stream().synchronize()
    return home


def run(field, signal, steps):
    fetcher = threading.Thread(target=bring_home, args=(field,))
    fetcher.start()
    for _ in range(steps):
        signal = cupy.sqrt(signal)
    fetcher.join()
    return signal
