import torch


@torch.compile
def grown(values, side):
    more = values + 1.0
    more.record_stream(side)  # misuse: SL043
    return more


def run(values, side):
    return grown(values, side)
