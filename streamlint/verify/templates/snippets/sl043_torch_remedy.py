import torch


@torch.compile
def grow(values):
    values.mul_(2.0).add_(1.0)


def last(values, side):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        grow(values)
    torch.cuda.current_stream().wait_stream(side)
    return values[-1].item()
