import torch


@torch.compile
def grown(values):
    return values + 1.0


def run(values, side):
    ready = torch.cuda.Event()
    more = grown(values)
    ready.record()
    side.wait_event(ready)
    return more
