import torch


@torch.compile
def grown(values):
    return values + 1.0


def last(value, values, side):
    with torch.cuda.stream(side):
        values.fill_(value)
    torch.cuda.current_stream().wait_stream(side)
    return grown(values)[-1].item()
