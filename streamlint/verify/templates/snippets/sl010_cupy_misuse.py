import threading

import cupy


def bring_home(field):
    return cupy.asnumpy(field)  # misuse: SL010


def run(field, signal, steps):
    fetcher = threading.Thread(target=bring_home, args=(field,))
    fetcher.start()
    for _ in range(steps):
        signal = cupy.sqrt(signal)
    fetcher.join()
    return signal
