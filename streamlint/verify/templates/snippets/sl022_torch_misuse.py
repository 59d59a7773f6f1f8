import torch


def upload(rows):
    moved = []
    for row in rows:
        host = torch.tensor(row)
        moved.append(host.pin_memory().to("cuda", non_blocking=True))  # misuse: SL022
    return moved
