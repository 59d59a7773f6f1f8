import torch
import torch.distributed as dist


def average(count):
    total = torch.ones(count, device="cuda")
    work = dist.all_reduce(total, async_op=True)
    work.wait()
    return total.sum().item()  # misuse: SL011
