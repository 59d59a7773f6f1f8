"""Two threads: one brings tensors home into pageable memory, the other only launches small kernels.

PyTorch's default stream is the null stream. While the copy waits there, the launches of the other thread are held up.
"""

import threading
import time

import torch


def bring_home(field: torch.Tensor, stop: threading.Event) -> None:
    while not stop.is_set():
        field.mul_(1.0001)
        home = torch.empty(field.shape)
        home.copy_(field)


def launch(signal: torch.Tensor, stop: threading.Event, longest: list[float]) -> None:
    while not stop.is_set():
        before = time.perf_counter()
        torch.sin_(signal)
        longest[0] = max(longest[0], time.perf_counter() - before)


def main() -> None:
    field = torch.ones(64 << 20, device="cuda")
    signal = torch.ones(1024, device="cuda")
    stop = threading.Event()
    longest = [0.0]
    threads = [
        threading.Thread(target=bring_home, args=(field, stop)),
        threading.Thread(target=launch, args=(signal, stop, longest)),
    ]
    for thread in threads:
        thread.start()
    time.sleep(2.0)
    stop.set()
    for thread in threads:
        thread.join()
    print(f"longest launch: {1e3 * longest[0]:.2f} ms")


if __name__ == "__main__":
    main()
