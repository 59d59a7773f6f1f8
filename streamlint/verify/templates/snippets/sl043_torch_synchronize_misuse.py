import torch


@torch.compile
def grown(others, side):
    side.synchronize()  # misuse: SL043
    return others + 1.0


def last(value, values, others, host, side):
    with torch.cuda.stream(side):
        values.fill_(value)
        host.copy_(values, non_blocking=True)
    grown(others, side)
    return host[-1].item()
