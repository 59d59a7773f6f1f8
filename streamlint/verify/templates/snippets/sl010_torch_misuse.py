import threading

import torch


def bring_home(field):
    return field.cpu()  # misuse: SL010


def run(field, signal, steps):
    field, signal = field.cuda(), signal.cuda()
    fetcher = threading.Thread(target=bring_home, args=(field,))
    fetcher.start()
    for _ in range(steps):
        signal = torch.mul(signal, 0.5)
    fetcher.join()
    return signal
