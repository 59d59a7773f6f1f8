import torch


@torch.compile
def grown(values, side):
    with torch.cuda.stream(side):
        more = values + 1.0  # misuse: SL043
    torch.cuda.current_stream().wait_stream(side)
    return more


def last(value, values, side):
    with torch.cuda.stream(side):
        values.fill_(value)
    return grown(values, side)[-1].item()
