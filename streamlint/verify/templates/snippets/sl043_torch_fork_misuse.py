import torch


@torch.compile
def grown(values, side):
    more = values + 1.0
    side.wait_stream(torch.cuda.current_stream())  # misuse: SL043
    return more


def last(value, first, second):
    with torch.cuda.stream(first):
        values = torch.full((1024,), value, device="cuda")
        more = grown(values, second)
        with torch.cuda.stream(second):
            return more[-1].item()
