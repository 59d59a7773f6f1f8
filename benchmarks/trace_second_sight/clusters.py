"""Spectra from a stream of blocks, standardised, reduced to components and clustered, with CuPy."""

import time

import cupy as cp
import numpy as np


def blocks(count, rows, length):
    random = np.random.default_rng(0)
    for _ in range(count):
        yield random.standard_normal((rows, length)).astype(np.float32)


class Moments:
    def __init__(self, size):
        self.count = 0
        self.mean, self.square = cp.zeros(size, cp.float32), cp.zeros(size, cp.float32)

    def update(self, rows):
        self.count += len(rows)
        delta = rows - self.mean
        self.mean += delta.sum(0) / self.count
        self.square += (delta * (rows - self.mean)).sum(0)

    def scale(self, rows):
        return (rows - self.mean) / cp.sqrt(self.square / max(self.count - 1, 1) + 1e-6)


def components(rows, count, rounds=60, tolerance=1e-5):
    covariance = rows.T @ rows / len(rows)
    found, values = [], []
    for _ in range(count):
        vector = cp.random.standard_normal(covariance.shape[0], dtype=cp.float32)
        value = 0.0
        for _ in range(rounds):
            vector = covariance @ vector
            norm = cp.linalg.norm(vector)
            vector /= norm
            if abs(float(norm) - value) < tolerance * float(norm):
                break
            value = float(norm)
        covariance -= norm * cp.outer(vector, vector)
        found.append(vector)
        values.append(value)
    return cp.stack(found, 1), values


def kmeans(rows, count, rounds=40):
    centres = rows[cp.random.permutation(len(rows))[:count]]
    history = []
    for number in range(rounds):
        distances = (rows**2).sum(1)[:, None] - 2 * rows @ centres.T + (centres**2).sum(1)[None]
        labels = distances.argmin(1)
        sums = cp.zeros_like(centres)
        cp.add.at(sums, labels, rows)
        sizes = cp.bincount(labels, minlength=count)
        updated = sums / cp.maximum(sizes, 1)[:, None]
        shift = float(cp.abs(updated - centres).max())
        inertia = distances.min(1).sum().item()
        history.append(inertia)
        if cp.any(sizes == 0):
            empty = cp.where(sizes == 0)[0]
            updated[empty] = rows[cp.random.randint(0, len(rows), len(empty))]
        centres = updated
        if number % 10 == 0:
            print(f"  round {number}: {inertia:.1f}, moved {shift:.4f}")
        if shift < 1e-4:
            break
    return labels, centres, history


def main():
    moments, kept = Moments(513), []
    window = cp.hanning(1024).astype(cp.float32)
    begun = time.time()
    for number, block in enumerate(blocks(24, 512, 1024)):
        signal = cp.asarray(block) * window
        power = cp.log1p(cp.abs(cp.fft.rfft(signal, axis=1)) ** 2)
        if not cp.isfinite(power).all():
            print("block", number, "is not finite")
            continue
        moments.update(power)
        kept.append(power)
        peak = int(power.mean(0).argmax())
        print(f"block {number}: peak {peak}, level {float(power.mean()):.3f}")
    rows = moments.scale(cp.concatenate(kept))
    basis, values = components(rows, 8)
    labels, _, history = kmeans(rows @ basis, 32)
    counts = np.bincount(cp.asnumpy(labels), minlength=32)
    print(counts.max(), values[0], history[-1], f"{time.time() - begun:.2f} s")


if __name__ == "__main__":
    main()
