import torch


def copied(value, count, first, second):
    kept = torch.empty(count, device="cuda")
    with torch.cuda.stream(first):
        numbers = torch.full((count,), value, device="cuda")
        numbers.record_stream(torch.cuda.current_stream())  # misuse: SL032
    second.wait_stream(first)
    with torch.cuda.stream(second):
        kept.copy_(numbers)
    del numbers
    with torch.cuda.stream(first):
        torch.full((count,), -1.0, device="cuda")
    second.synchronize()
    return kept[-1].item()
