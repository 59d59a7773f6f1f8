"""A pipeline of CuPy: recordings of the heart are filtered, beats found and averaged, outliers left out, and statistics kept."""

import time

import cupy as cp
import numpy as np
from cupyx.scipy import ndimage


def recordings(count, leads, length, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(length) / 500.0
    for _ in range(count):
        rate = rng.uniform(0.9, 1.6, (leads, 1))
        beats = np.exp(-((((t * rate) % 1.0) - 0.3) ** 2) / 0.0004)
        yield (beats + 0.1 * rng.standard_normal((leads, length))).astype(np.float32)


class Bandpass:
    def __init__(self, length, low, high, rate=500.0):
        frequency = cp.fft.rfftfreq(length, 1 / rate)
        self.gain = ((frequency > low) & (frequency < high)).astype(cp.float32)

    def __call__(self, x):
        return cp.fft.irfft(cp.fft.rfft(x, axis=-1) * self.gain, n=x.shape[-1], axis=-1).astype(cp.float32)


class Statistics:
    def __init__(self):
        self.count, self.mean, self.m2 = 0, 0.0, 0.0

    def add(self, values):
        for value in values:
            self.count += 1
            delta = value - self.mean
            self.mean += delta / self.count
            self.m2 += delta * (value - self.mean)

    @property
    def deviation(self):
        return (self.m2 / max(self.count - 1, 1)) ** 0.5


def peaks(lead, threshold, apart=150):
    is_peak = (lead == ndimage.maximum_filter1d(lead, 2 * apart + 1)) & (lead > threshold)
    return cp.flatnonzero(is_peak)


def average_beat(lead, places, before=100, after=200):
    inside = places[(places >= before) & (places < len(lead) - after)]
    if inside.size == 0:
        return None
    rows = lead[inside[:, None] + cp.arange(-before, after)]
    centre = cp.median(rows, axis=0)
    distance = cp.linalg.norm(rows - centre, axis=1)
    kept = rows[distance <= 2 * cp.median(distance)]
    return kept.mean(axis=0)


def main(count=12, leads=12, length=30000):
    bandpass, intervals, templates, noisy = Bandpass(length, 0.5, 40.0), Statistics(), [], 0
    begun = time.time()
    for number, record in enumerate(recordings(count, leads, length, 0)):
        x = bandpass(cp.asarray(record))
        x -= x.mean(axis=1, keepdims=True)
        x /= x.std(axis=1, keepdims=True)
        for lead in x:
            noise = float(cp.median(cp.abs(cp.diff(lead))))
            if noise > 0.5:
                noisy += 1
                continue
            places = peaks(lead, 3.0)
            if len(places) < 3:
                continue
            gaps = cp.diff(places)
            intervals.add(cp.asnumpy(gaps) / 500.0)
            beat = average_beat(lead, places)
            if beat is not None:
                height = beat.max()
                templates.append(beat / height)
        if templates:
            together = cp.stack(templates[-leads:])
            likeness = cp.corrcoef(together)
            print(f"{number}: {len(templates)} beats, likeness {likeness.mean().item():.3f}, interval {intervals.mean:.3f} s")
    matrix = cp.stack(templates)
    values = cp.linalg.svd(matrix - matrix.mean(axis=0), compute_uv=False)
    share = cp.cumsum(values**2) / (values**2).sum()
    enough = int(cp.searchsorted(share, cp.asarray([0.95], dtype=share.dtype))[0])
    print(f"{enough} components, {noisy} noisy, deviation {intervals.deviation:.4f} s, {time.time() - begun:.1f} s")


if __name__ == "__main__":
    main()
