import torch


@torch.compile
def grown(others):
    return others + 1.0


def last(value, values, others, host, side):
    with torch.cuda.stream(side):
        values.fill_(value)
        host.copy_(values, non_blocking=True)
    side.synchronize()
    grown(others)
    return host[-1].item()
