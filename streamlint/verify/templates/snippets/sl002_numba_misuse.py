from numba import cuda

left = cuda.stream()
right = cuda.stream()


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2.0


def step(a, b, steps):
    double[4, 256, left](a)
    double[1, 32](steps)  # misuse: SL002
    double[4, 256, right](b)
