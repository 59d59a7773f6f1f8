import torch


@torch.compile(mode="reduce-overhead")
def last(values, side):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # misuse: SL043
        doubled = values * 2.0
    torch.cuda.current_stream().wait_stream(side)
    return doubled + 1.0
