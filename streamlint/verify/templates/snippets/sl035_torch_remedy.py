import threading

import torch


def read_back(losses, host):
    torch.cuda.set_device(1)
    found = []

    def finish():
        torch.cuda.set_device(1)
        torch.cuda.synchronize()
        found.append(host[0].item())

    torch.cuda._sleep(100_000_000)
    losses.mul_(2.0)
    host.copy_(losses, non_blocking=True)
    reader = threading.Thread(target=finish)
    reader.start()
    reader.join()
    return found[0]
