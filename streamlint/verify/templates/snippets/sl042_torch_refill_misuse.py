import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem


class Exchange:
    def __init__(self, count, side):
        self.mine = symm_mem.empty(count, dtype=torch.float32, device="cuda")
        self.handle = symm_mem.rendezvous(self.mine, dist.group.WORLD)
        self.theirs = self.handle.get_buffer(1 - dist.get_rank(), (count,), torch.float32)
        self.side = side

    def turn(self, first, second):
        self.mine.fill_(first)
        self.handle.barrier()
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            total = self.theirs.sum()
        torch.cuda.current_stream().wait_stream(self.side)
        self.mine.fill_(second)  # misuse: SL042
        self.handle.barrier()
        return total
