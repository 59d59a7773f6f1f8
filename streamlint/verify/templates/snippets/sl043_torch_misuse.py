import torch


@torch.compile
def grow(values, side):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        values.mul_(2.0).add_(1.0)  # misuse: SL043
    torch.cuda.current_stream().wait_stream(side)


def last(values, side):
    grow(values, side)
    return values[-1].item()
