import torch.distributed as dist


class Totals:
    def __init__(self):
        self.rows, self.columns = dist.new_group(backend="nccl"), dist.new_group(backend="nccl")

    def reduce(self, total, seen):
        if dist.get_rank() == 0:
            dist.all_reduce(total, group=self.rows)
            dist.all_reduce(seen, group=self.columns)
        else:
            dist.all_reduce(seen, group=self.columns)
            dist.all_reduce(total, group=self.rows)  # misuse: SL037


def prepare():
    return Totals()
