import torch


@torch.compile
def total(values, side):
    doubled = values * 2.0
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # misuse: SL043
        grown = doubled + 1.0
    torch.cuda.current_stream().wait_stream(side)
    return grown + 1.0


def last(values, side):
    return total(values, side)[-1].item()
