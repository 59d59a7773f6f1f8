import cupy


def collect(values, stream, results):
    def on_done(array):
        results.append(cupy.sum(array))  # misuse: SL004

    stream.launch_host_func(on_done, values)
    stream.synchronize()
