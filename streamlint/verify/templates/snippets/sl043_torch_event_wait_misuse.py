import torch


@torch.compile
def grown(values, ready):
    torch.cuda.current_stream().wait_event(ready)  # misuse: SL043
    return values + 1.0


def last(value, values, side):
    with torch.cuda.stream(side):
        values.fill_(value)
        ready = torch.cuda.Event()
        ready.record()
    return grown(values, ready)[-1].item()
