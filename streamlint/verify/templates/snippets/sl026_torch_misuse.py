import threading

import torch

side = torch.cuda.Stream()


def total(values):
    values, sums = values.cuda(), []

    def add_up():
        sums.append(values.sum())

    with torch.cuda.stream(side):
        values.add_(1.0)
        worker = threading.Thread(target=add_up)
        worker.start()  # misuse: SL026
    worker.join()
    side.synchronize()
    return sums[0].item()
