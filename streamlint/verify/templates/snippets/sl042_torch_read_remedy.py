import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem


class Exchange:
    def __init__(self, count):
        self.mine = symm_mem.empty(count, dtype=torch.float32, device="cuda")
        self.handle = symm_mem.rendezvous(self.mine, dist.group.WORLD)
        self.peer = 1 - dist.get_rank()

    def total(self, value):
        self.mine.fill_(value)
        self.handle.barrier()
        theirs = self.handle.get_buffer(self.peer, self.mine.shape, self.mine.dtype)
        total = theirs.sum()
        self.handle.barrier()
        return total
