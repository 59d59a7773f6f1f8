import cupy


def relax(field, mixed, rounds):
    for _ in range(rounds):
        cupy.multiply(field, 0.5, out=mixed)
        cupy.add(mixed, 1.0, out=field)
        cupy.cuda.Device().synchronize()  # misuse: SL021
