"""A CuPy pipeline: frames are deblurred by iterations that end where the change is small, and each result is measured and saved."""

import cupy as cp
import numpy as np
from cupyx.scipy import ndimage


def psf(size, sigma):
    axis = np.arange(size) - size // 2
    kernel = np.exp(-(axis[:, None] ** 2 + axis[None, :] ** 2) / (2 * sigma**2))
    return (kernel / kernel.sum()).astype(np.float32)


def transfer_function(kernel, shape):
    padded = cp.zeros(shape, cp.float32)
    padded[: kernel.shape[0], : kernel.shape[1]] = cp.asarray(kernel)
    return cp.fft.rfft2(cp.roll(padded, (-(kernel.shape[0] // 2), -(kernel.shape[1] // 2)), (0, 1)))


def convolve(image, otf):
    return cp.fft.irfft2(cp.fft.rfft2(image) * otf, s=image.shape)


def richardson_lucy(image, otf, iterations=30, tolerance=1e-4):
    estimate = cp.full_like(image, float(image.mean()))
    for _ in range(iterations):
        ratio = image / cp.maximum(convolve(estimate, otf), 1e-6)
        update = estimate * convolve(ratio, cp.conj(otf))
        change = cp.linalg.norm(update - estimate) / cp.linalg.norm(estimate)
        estimate = update
        if change < tolerance:
            break
    return estimate


def spots(image, threshold):
    smooth = ndimage.gaussian_filter(image, 2.0)
    labels, count = ndimage.label(smooth > threshold)
    if count == 0:
        return np.empty((0, 2))
    centres = ndimage.center_of_mass(smooth, labels, cp.arange(1, min(int(count), 50) + 1))
    return np.array([[float(y), float(x)] for y, x in centres])


def run(frames, otf, background):
    results, stats = [], []
    for frame in frames:
        image = cp.asarray(frame) - background
        image = cp.clip(image, 0, None)
        restored = richardson_lucy(image, otf)
        low, high = cp.percentile(restored, cp.asarray([1.0, 99.9]))
        stats.append({"mean": restored.mean().item(), "low": float(low), "high": float(high)})
        found = spots(restored, float(high) * 0.5)
        results.append((cp.asnumpy(restored), found))
    return results, stats


def main():
    rng = np.random.default_rng(0)
    frames = rng.gamma(2.0, 50.0, (8, 1024, 1024)).astype(np.float32)
    otf = transfer_function(psf(31, 3.0), (1024, 1024))
    background = cp.asarray(np.full((1024, 1024), 5.0, np.float32))
    for _ in range(3):
        results, stats = run(frames, otf, background)
    print(len(results), stats[-1])


if __name__ == "__main__":
    main()
