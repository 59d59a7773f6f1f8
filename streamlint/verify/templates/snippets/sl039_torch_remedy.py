import torch


def copied(value, count, stream):
    kept = torch.empty(count, device="cuda")
    numbers = torch.full((count,), value, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        kept.copy_(numbers)
    torch.cuda.current_stream().wait_stream(stream)
    numbers.untyped_storage().resize_(0)
    torch.full((count,), -1.0, device="cuda")
    stream.synchronize()
    return kept[-1].item()
