import torch


def upload(rows):
    moved = []
    for row in rows:
        host = torch.tensor(row)
        moved.append(host.to("cuda", non_blocking=True))
    return moved
