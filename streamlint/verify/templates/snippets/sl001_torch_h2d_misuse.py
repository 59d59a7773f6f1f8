import torch


def upload(count, stream):
    batch = torch.ones(count)
    with torch.cuda.stream(stream):
        return batch.to("cuda", non_blocking=True)  # misuse: SL001
