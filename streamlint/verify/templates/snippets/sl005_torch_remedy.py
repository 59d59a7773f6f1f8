import torch


def read_loss(loss, stream):
    with torch.cuda.stream(stream):
        host = loss.to("cpu", non_blocking=True)
    stream.synchronize()
    return host.item()
