import torch


def download(count, stream):
    host = torch.empty(count, pin_memory=True)
    with torch.cuda.stream(stream):
        scores = torch.ones(count, device="cuda")
        host.copy_(scores, non_blocking=True)
    return host
