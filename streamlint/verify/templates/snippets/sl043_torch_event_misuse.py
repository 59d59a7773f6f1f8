import torch


@torch.compile
def grown(values, ready):
    more = values + 1.0
    ready.record()  # misuse: SL043
    return more


def run(values, side):
    ready = torch.cuda.Event()
    more = grown(values, ready)
    side.wait_event(ready)
    return more
