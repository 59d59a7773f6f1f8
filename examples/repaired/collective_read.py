"""Read the result of a collective on the host: one step late, from pinned memory, after its event.

Run with `torchrun --nproc-per-node 2 collective_read.py`.
"""

import os

import torch
import torch.distributed as dist


def main() -> None:
    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    weights = torch.rand(4096, 4096, device="cuda")
    verdict = torch.zeros(1, pin_memory=True)
    arrived = torch.cuda.Event()
    for step in range(10):
        if step > 0:
            arrived.synchronize()
            if float(verdict[0]) > 100:
                break
        vote = torch.full((1,), float(step), device="cuda")
        work = dist.all_reduce(vote, async_op=True)
        weights = torch.mm(weights, weights).softmax(dim=1)
        work.wait()
        verdict.copy_(vote, non_blocking=True)
        arrived.record()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
