import torch


def wait_for(stream):
    event = torch.cuda.Event(blocking=True)
    event.record(stream)
    event.synchronize()
