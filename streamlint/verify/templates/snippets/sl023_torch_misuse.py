import torch


def mark(stream, rounds):
    event = torch.cuda.Event(enable_timing=True)  # misuse: SL023
    for _ in range(rounds):
        event.record(stream)
    event.synchronize()
