"""Diffusion on a grid with CuPy: snapshots go to a monitor while the simulation runs."""

import cupy as cp
import cupyx
import numpy as np

N = 2048
ROUNDS = 200


def spread(field: cp.ndarray) -> cp.ndarray:
    neighbours = cp.roll(field, 1, 0) + cp.roll(field, -1, 0) + cp.roll(field, 1, 1) + cp.roll(field, -1, 1)
    return field + 0.2 * (neighbours - 4 * field)


class Monitor:
    """Keeps the total heat and the hottest cell of some rounds."""

    def __init__(self) -> None:
        self.peaks: list[float] = []
        self.rows = cupyx.empty_pinned((N,), dtype=np.float32)
        self.totals: list[float] = []

    def note_peak(self, field: cp.ndarray) -> None:
        self.peaks.append(float(field.max()))

    def note_total(self, rows: cp.ndarray) -> None:
        rows.get(out=self.rows, blocking=False)
        self.totals.append(float(np.sum(self.rows)))


def simulate() -> Monitor:
    monitor = Monitor()
    stream = cp.cuda.Stream()
    with stream:
        field = cp.zeros((N, N), dtype=cp.float32)
        field[N // 2, N // 2] = 1e6
    for step in range(ROUNDS):
        with stream:
            field = spread(field)
        field = cp.maximum(field, 0)
        with stream:
            field *= 0.999
            if step % 20 == 0:
                monitor.note_total(field.sum(axis=1))
    stream.launch_host_func(monitor.note_peak, field)
    stream.synchronize()
    return monitor


if __name__ == "__main__":
    result = simulate()
    print(result.totals, result.peaks)
