"""Hand a CUDA tensor to another process: what a side stream is still writing is sent from the default stream.

Pickling the tensor records an event on the putting thread's current stream, so the child waits for the wrong stream. Then the buffer is
written again while the child may still read it.
"""

import torch
import torch.multiprocessing as mp


def child(inbox: "mp.SimpleQueue", outbox: "mp.SimpleQueue") -> None:
    while (field := inbox.get()) is not None:
        outbox.put(float(field.double().mean().item()))
        del field


def main() -> None:
    context = mp.get_context("spawn")
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=child, args=(inbox, outbox))
    process.start()
    side = torch.cuda.Stream()
    field = torch.zeros(4096, 4096, device="cuda")
    weights = torch.rand(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    for round_ in range(10):
        with torch.cuda.stream(side):
            for _ in range(20):
                torch.mm(weights, weights)
            field.fill_(float(round_))
        inbox.put(field)
    inbox.put(None)
    print([outbox.get() for _ in range(10)])
    process.join()


if __name__ == "__main__":
    main()
