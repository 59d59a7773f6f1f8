"""Programs for `trace_gains.py`, each with a wait and repaired. Comments `STALL` mark the lines whose calls hold the host.

Each entry of ``PROGRAMS`` makes its data and runs some steps, with the wait or without. Some keep the GPU busy, some the host.
"""
# ruff: noqa: SIM102, SIM108 - the wait stands on a line of its own

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Made = Any


def network(width: int = 1024, depth: int = 6, out: int = 10) -> nn.Module:
    torch.manual_seed(0)
    layers: list[nn.Module] = [m for _ in range(depth) for m in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(width, out)).cuda()


class Training:
    def __init__(self, width: int = 1024, depth: int = 6, batch: int = 2048, **options: Any) -> None:
        self.model = network(width, depth)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, **options)
        self.x = torch.randn(batch, width, device="cuda")
        self.y = torch.randint(0, 10, (batch,), device="cuda")

    def step(self, x: torch.Tensor | None = None) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(self.x if x is None else x), self.y)
        loss.backward()
        return loss


def item(t: Training, repaired: bool, steps: int = 30) -> None:
    for _ in range(steps):
        loss = t.step()
        t.optimizer.step()
        if not repaired:
            loss.item()  # STALL


def clip(t: Training, repaired: bool, steps: int = 12) -> None:
    for _ in range(steps):
        t.step()
        nn.utils.clip_grad_norm_(t.model.parameters(), 1.0, error_if_nonfinite=not repaired)  # STALL
        t.optimizer.step()


def upload_made() -> Training:
    t = Training(1024, 6, 4096)
    t.host = [torch.randn(4096, 1024) for _ in range(4)]  # type: ignore[attr-defined]
    t.pinned = [one.pin_memory() for one in t.host]  # type: ignore[attr-defined]
    return t


def upload(t: Any, repaired: bool, steps: int = 25) -> None:
    for n in range(steps):
        if repaired:
            x = t.pinned[n % 4].to("cuda", non_blocking=True)
        else:
            x = t.host[n % 4].to("cuda")  # STALL
        t.step(x)
        t.optimizer.step()


def synchronize(t: Training, repaired: bool, steps: int = 25) -> None:
    for _ in range(steps):
        t.step()
        t.optimizer.step()
        if not repaired:
            torch.cuda.synchronize()  # STALL


def matrices(count: int = 2, width: int = 2048) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(width, width, device="cuda") for _ in range(count)]


def mask(data: list[torch.Tensor], repaired: bool, steps: int = 80) -> None:
    x, w = data
    total = torch.zeros((), device="cuda")
    for _ in range(steps):
        h = x @ w
        h = torch.tanh(h @ w)
        good = h > 0
        if repaired:
            total += torch.where(good, h, 0).sum()
        else:
            chosen = h[good]  # STALL
            total += chosen.sum()
        for _ in range(20):
            h = h * 0.99 + 0.01


def cache(t: Training, repaired: bool, steps: int = 25) -> None:
    for _ in range(steps):
        t.step()
        t.optimizer.step()
        if not repaired:
            torch.cuda.empty_cache()  # STALL


def metric_made() -> Made:
    return network(1024, 8, 1000), matrices(4, 2048), torch.randint(0, 1000, (2048,), device="cuda")


def metric(data: Made, repaired: bool, steps: int = 100) -> int:
    model, batches, target = data
    hits, count = 0, torch.zeros((), dtype=torch.long, device="cuda")
    with torch.no_grad():
        for n in range(steps):
            right = model(batches[n % 4][:, :1024]).argmax(1) == target
            if repaired:
                count += right.sum()
            else:
                seen = right.cpu().numpy()  # STALL
                hits += seen.sum()
    return hits + int(count)


class Decoder(nn.Module):
    def __init__(self, width: int = 1024, depth: int = 8, words: int = 8000) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(depth)
        )
        self.head = nn.Linear(width, words)
        self.cuda()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x).argmax(-1)


@torch.no_grad()
def generate(model: Decoder, repaired: bool, steps: int = 40) -> None:
    tokens = torch.arange(768, device="cuda")
    done = torch.zeros(768, dtype=torch.bool, device="cuda")
    for _ in range(steps):
        tokens = model(tokens)
        done |= tokens == 9000
        if not repaired:
            if done.all():  # STALL
                break


@torch.no_grad()
def stream_tokens(model: Decoder, repaired: bool, steps: int = 80) -> list[Any]:
    """Few tokens at once: the host is busier than the GPU."""
    tokens = torch.arange(8, device="cuda")
    told: list[Any] = []
    for _ in range(steps):
        tokens = model(tokens)
        if repaired:
            told.append(tokens)
        else:
            told.append(tokens.tolist())  # STALL
    return told


def scaled_made() -> Made:
    return Training(2048, 5, 4096, fused=True), torch.amp.GradScaler("cuda")


def scaled(made: Made, repaired: bool, steps: int = 40) -> list[float]:
    t, scaler = made
    scales = []
    for _ in range(steps):
        t.optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = nn.functional.cross_entropy(t.model(t.x), t.y)
        scaler.scale(loss).backward()
        scaler.step(t.optimizer)
        scaler.update()
        if not repaired:
            scales.append(scaler.get_scale())  # STALL
    return scales


class Meters:
    def __init__(self) -> None:
        self.sums = [0.0, 0.0]

    def update(self, *values: float) -> None:
        self.sums = [a + b for a, b in zip(self.sums, values, strict=True)]


def average_made() -> Made:
    t = Training(1024, 6, 4096)
    return t, copy.deepcopy(t.model)


def average(made: Made, repaired: bool, steps: int = 30) -> Meters:
    """Training with a moving average of the weights, and meters."""
    t, shadow = made
    meters = Meters()
    for _ in range(steps):
        loss = t.step()
        t.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(shadow.parameters()), list(t.model.parameters()), 0.01)
            norm = shadow[0].weight.norm()
        if not repaired:
            meters.update(loss.item(), norm.item())  # STALL
    return meters


def cupy_matrix() -> Made:
    import cupy

    return cupy.random.standard_normal((2048, 2048), dtype=cupy.float32)


def cupy_get(x: Made, repaired: bool, steps: int = 60) -> None:
    import cupy

    totals = []
    for _ in range(steps):
        h = x @ x
        for _ in range(25):
            h = cupy.tanh(h * 0.01)
        total = h.sum()
        totals.append(total if repaired else total.get())  # STALL


def cupy_float(x: Made, repaired: bool, steps: int = 40) -> None:
    import cupy

    for _ in range(steps):
        h = cupy.exp(x * 0.1)
        for _ in range(8):
            h = h @ x * 0.001
        if repaired:
            x = h / cupy.abs(h).max()
        else:
            x = h / float(cupy.abs(h).max())  # STALL


def cupy_unpooled(x: Made, repaired: bool, steps: int = 40) -> None:
    import cupy

    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc if repaired else None)
    try:
        for _ in range(steps):
            h = cupy.tanh(x)  # STALL
            for _ in range(6):
                h = cupy.tanh(h)  # STALL
    finally:
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)


def indexes(data: list[torch.Tensor], repaired: bool, steps: int = 80) -> None:
    x, w = data
    for _ in range(steps):
        h = x @ w
        row = h[0]
        if repaired:
            found = torch.topk(row, 1024).indices
        else:
            found = torch.nonzero(row > 0)  # STALL
        h[0, found[:8].flatten()] = 0
        for _ in range(12):
            h = h * 0.99 + 0.01


def lengths_made() -> Made:
    torch.manual_seed(0)
    return matrices(2, 4096), torch.randint(1, 9, (512,), device="cuda")


def lengths(made: Made, repaired: bool, steps: int = 40) -> list[Any]:
    """The lengths of a batch are read for the log; the matrices are large, so the GPU is busy."""
    (x, w), counts = made
    told: list[Any] = []
    for _ in range(steps):
        h = torch.tanh(x @ w)
        seen = counts + (h[0, :512] > 2)
        if not repaired:
            told.append(seen.tolist())  # STALL
        x = h * 0.5
        for _ in range(10):
            x = x * 0.99 + 0.01
    return told


def repeat(made: Made, repaired: bool, steps: int = 60) -> None:
    (x, w), counts = made
    rows = x[:512]
    size = 512 * 9
    padded = counts.clone()
    padded[0] += size - counts.sum()
    for _ in range(steps):
        h = torch.relu(rows @ w)
        if repaired:
            many = torch.repeat_interleave(h, padded, dim=0, output_size=size)
        else:
            many = torch.repeat_interleave(h, padded, dim=0)  # STALL
        many = many * 0.5 + 1
        many.mul_(0.99)


def small_upload_made() -> Made:
    host = [torch.randn(64) for _ in range(8)]
    return matrices(2, 2048), host, [one.pin_memory() for one in host]


def small_upload(made: Made, repaired: bool, steps: int = 80) -> None:
    (x, w), host, pinned = made
    for n in range(steps):
        if repaired:
            rates = pinned[n % 8].to("cuda", non_blocking=True)
        else:
            rates = host[n % 8].to("cuda")  # STALL
        h = x @ w
        for _ in range(10):
            h = h * rates[0]
        x = torch.tanh(h)


def registered_made() -> Made:
    return Training(1024, 4, 2048), [torch.randn(2048, 1024) for _ in range(4)], [torch.randn(2048, 1024).pin_memory() for _ in range(4)]


def registered(made: Made, repaired: bool, steps: int = 25) -> None:
    """Memory is pinned for each copy, and unpinned behind it."""
    t, host, pinned = made
    runtime = torch.cuda.cudart()
    for n in range(steps):
        x = pinned[n % 4] if repaired else host[n % 4]
        if not repaired:
            runtime.cudaHostRegister(x.data_ptr(), x.numel() * 4, 0)  # STALL
        t.step(x.to("cuda", non_blocking=True))
        t.optimizer.step()
        if not repaired:
            runtime.cudaHostUnregister(x.data_ptr())  # STALL


def event_made() -> Made:
    return matrices(3, 2048), torch.randn(2048, 2048).pin_memory(), torch.cuda.Stream(), torch.cuda.Event()


def event(made: Made, repaired: bool, steps: int = 80) -> None:
    """Uploads run on a stream of their own; the host waits for each, where the other stream could."""
    (buffer, w, h), host, stream, ready = made
    for _ in range(steps):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            buffer.copy_(host, non_blocking=True)
            ready.record()
        if repaired:
            torch.cuda.current_stream().wait_event(ready)
        else:
            ready.synchronize()  # STALL
        x = buffer @ w
        for _ in range(14):
            x = x * 0.99 + h


PROGRAMS: dict[str, tuple[Callable[[], Made], Callable[..., Any]]] = {
    "item each step": (lambda: Training(1024, 6, 4096), item),
    "clip_grad_norm_": (lambda: Training(2048, 6, 4096), clip),
    "pageable upload": (upload_made, upload),
    "synchronize()": (lambda: Training(2048, 5, 2048), synchronize),
    "boolean mask": (matrices, mask),
    "empty_cache()": (lambda: Training(1024, 4, 2048), cache),
    "metric .cpu()": (metric_made, metric),
    "done.all()": (Decoder, generate),
    "CuPy .get()": (cupy_matrix, cupy_get),
    "tokens .tolist()": (Decoder, stream_tokens),
    "GradScaler.get_scale()": (scaled_made, scaled),
    "moving average, meters": (average_made, average),
    "CuPy float()": (cupy_matrix, cupy_float),
    "CuPy without a pool": (cupy_matrix, cupy_unpooled),
    "nonzero": (matrices, indexes),
    "lengths .tolist()": (lengths_made, lengths),
    "repeat_interleave": (lengths_made, repeat),
    "small pageable upload": (small_upload_made, small_upload),
    "cudaHostRegister": (registered_made, registered),
    "event.synchronize()": (event_made, event),
}
