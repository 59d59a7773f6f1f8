import torch


@torch.compile
def grown(values, side):
    torch.cuda.current_stream().wait_stream(side)  # misuse: SL043
    return values + 1.0


def last(value, values, side):
    with torch.cuda.stream(side):
        values.fill_(value)
    return grown(values, side)[-1].item()
