"""Hand an object that holds CUDA tensors to another process: what it holds is still being written on a stream of its own.

Pickling finds the tensors inside, and records an event on the stream that is current then: the default one, which the child waits for.
"""

import torch
import torch.multiprocessing as mp


class Parcel:
    """A field with the step that it belongs to."""

    def __init__(self, step: int, field: torch.Tensor) -> None:
        self.step = step
        self.field = field


def child(inbox: "mp.SimpleQueue", outbox: "mp.SimpleQueue") -> None:
    label, parcel = inbox.get()
    outbox.put((label, parcel.step, float(parcel.field.mean().item())))


def main() -> None:
    context = mp.get_context("spawn")
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=child, args=(inbox, outbox))
    process.start()
    side = torch.cuda.Stream()
    weights = torch.rand(4096, 4096, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        field = torch.ones(4096, 4096, device="cuda")
        for _ in range(10):
            field = torch.mm(field, weights)
    parcel = Parcel(10, field)
    inbox.put(("last", parcel))
    print(outbox.get())
    process.join()


if __name__ == "__main__":
    main()
