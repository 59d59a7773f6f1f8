import torch
import torch.distributed as dist


class Totals:
    def __init__(self, side):
        self.rows, self.columns = dist.new_group(backend="nccl"), dist.new_group(backend="nccl")
        self.side = side

    def reduce(self, total, seen):
        with torch.cuda.stream(self.side):
            dist.all_reduce(total, group=self.rows)
        dist.all_reduce(seen, group=self.columns)  # misuse: SL037


def prepare():
    return Totals(torch.cuda.Stream())
