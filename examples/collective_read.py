"""Read the result of a collective on the host: `wait` has only told the stream to wait, so the read blocks until all ranks arrive.

Run with `torchrun --nproc-per-node 2 collective_read.py`.
"""

import os

import torch
import torch.distributed as dist


def main() -> None:
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    weights = torch.rand(4096, 4096, device="cuda")
    for step in range(10):
        vote = torch.full((1,), float(step), device="cuda")
        work = dist.all_reduce(vote, async_op=True)
        work.wait()
        if vote.item() > 100:
            break
        weights = torch.mm(weights, weights).softmax(dim=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
