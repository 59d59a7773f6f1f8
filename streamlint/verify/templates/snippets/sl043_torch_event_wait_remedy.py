import torch


@torch.compile
def grown(values):
    return values + 1.0


def last(value, values, side):
    with torch.cuda.stream(side):
        values.fill_(value)
        ready = torch.cuda.Event()
        ready.record()
    torch.cuda.current_stream().wait_event(ready)
    return grown(values)[-1].item()
