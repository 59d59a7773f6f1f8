import torch.distributed as dist


class Totals:
    def __init__(self):
        self.rows, self.columns = dist.new_group(backend="nccl"), dist.new_group(backend="nccl")

    def reduce(self, total, seen):
        dist.all_reduce(total, group=self.rows)
        dist.all_reduce(seen, group=self.columns)


def prepare():
    return Totals()
