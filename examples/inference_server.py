"""Answer requests with a toy language model: the reply is read before it has arrived."""

import queue
import threading

import torch
from torch import nn

VOCABULARY = 32_000
LONGEST = 64


class Engine:
    """Greedy decoding; the chosen tokens come back through a pinned buffer."""

    def __init__(self) -> None:
        self.embed = nn.Embedding(VOCABULARY, 256, device="cuda")
        self.head = nn.Linear(256, VOCABULARY, device="cuda")
        self.tokens = torch.zeros(LONGEST, dtype=torch.int64, device="cuda")
        self.reply = torch.zeros(LONGEST, dtype=torch.int64, pin_memory=True)

    def decode(self, first: int, length: int) -> None:
        self.tokens.fill_(first)
        for position in range(1, length):
            logits = self.head(self.embed(self.tokens[position - 1]))
            self.tokens[position : position + 1] = logits.argmax()
        self.reply.copy_(self.tokens, non_blocking=True)

    @torch.inference_mode()
    def answer(self, first: int, length: int) -> list[int]:
        self.decode(first, length)
        return self.reply.tolist()[:length]


def serve(requests: "queue.Queue[tuple[int, int] | None]", replies: "queue.Queue[list[int]]") -> None:
    engine = Engine()
    while (request := requests.get()) is not None:
        first, length = request
        replies.put(engine.answer(first, length))
        torch.cuda.empty_cache()


def main() -> None:
    requests: queue.Queue[tuple[int, int] | None] = queue.Queue()
    replies: queue.Queue[list[int]] = queue.Queue()
    server = threading.Thread(target=serve, args=(requests, replies))
    server.start()
    for first in (1, 20, 300):
        requests.put((first, 16))
        print(first, replies.get())
    requests.put(None)
    server.join()


if __name__ == "__main__":
    main()
