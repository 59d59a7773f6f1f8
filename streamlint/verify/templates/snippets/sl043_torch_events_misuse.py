import torch


@torch.compile
def last(values, side):
    ready, done = torch.cuda.Event(), torch.cuda.Event()
    ready.record()
    with torch.cuda.stream(side):  # misuse: SL043
        ready.wait()
        doubled = values * 2.0
        done.record()
    done.wait()
    return doubled + 1.0
