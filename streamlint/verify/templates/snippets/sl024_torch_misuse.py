import torch


def wait_for(stream):
    event = torch.cuda.Event(blocking=True)
    event.record(stream)
    while not event.query():  # misuse: SL024
        pass
