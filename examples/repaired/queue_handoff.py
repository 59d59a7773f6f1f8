"""Hand a CUDA tensor to another process: written and put on one stream, and not written again before the child has answered."""

import torch
import torch.multiprocessing as mp


def child(inbox: "mp.SimpleQueue", outbox: "mp.SimpleQueue") -> None:
    while (field := inbox.get()) is not None:
        mean = float(field.double().mean().item())
        del field
        outbox.put(mean)


def main() -> None:
    context = mp.get_context("spawn")
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=child, args=(inbox, outbox))
    process.start()
    side = torch.cuda.Stream()
    field = torch.zeros(4096, 4096, device="cuda")
    weights = torch.rand(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    means = []
    for round_ in range(10):
        with torch.cuda.stream(side):
            for _ in range(20):
                torch.mm(weights, weights)
            field.fill_(float(round_))
            side.synchronize()
            inbox.put(field)
        means.append(outbox.get())
    inbox.put(None)
    print(means)
    process.join()


if __name__ == "__main__":
    main()
