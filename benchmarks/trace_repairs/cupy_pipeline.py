"""A pipeline of CuPy over blocks of a signal: each is scaled by its own peak, which passes through the host, and windowed there before."""

import cupy
import numpy


def make():
    blocks = numpy.random.default_rng(0).standard_normal((4, 1 << 20), dtype=numpy.float32)
    return blocks, numpy.hanning(1 << 20).astype(numpy.float32), cupy.random.standard_normal((3072, 3072), dtype=cupy.float32)


def run(made, rounds=10):
    blocks, window, weights = made
    total = cupy.zeros((), cupy.float32)
    for _ in range(rounds):
        for block in blocks:
            signal = cupy.asarray(block * window)
            spectrum = cupy.abs(cupy.fft.rfft(signal))
            peak = spectrum.max()
            features = cupy.tile((spectrum[: 128 * 3072] / peak).reshape(128, 3072), (4, 1))
            for _ in range(8):
                features = cupy.tanh(features @ weights)
            level = float(cupy.abs(features).mean())  # STALL
            # REPAIR level = cupy.abs(features).mean()
            total += level
    return float(total)


if __name__ == "__main__":
    print(run(make()))
