// A stream is held by a host function until another thread has launched its statistics kernel. Meanwhile the first thread copies a result
// into pageable memory on the null stream. That copy waits for the held stream, keeps the launch of the other thread waiting, and so
// nobody ever opens the gate.

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <mutex>
#include <thread>

#define CHECK(call)                                                          \
    do {                                                                     \
        cudaError_t status_ = (call);                                        \
        if (status_ != cudaSuccess) {                                        \
            std::fprintf(stderr, "%s\n", cudaGetErrorString(status_));       \
            std::exit(1);                                                    \
        }                                                                    \
    } while (0)

struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;

    void pass() {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [this] { return open; });
        open = false;
    }
    void unlock() {
        std::lock_guard<std::mutex> lock(mutex);
        open = true;
        changed.notify_one();
    }
};

__global__ void advance(int* state) { *state += 1; }

__global__ void observe(int* seen) { *seen += 1; }

static void CUDART_CB hold(void* data) {
    Gate* gate = static_cast<Gate*>(data);
    gate->pass();
}

static void statistics(Gate* gate, int* seen, cudaStream_t stream) {
    observe<<<1, 1, 0, stream>>>(seen);
    gate->unlock();
}

int main() {
    const int rounds = 4;
    int *state, *seen;
    CHECK(cudaMalloc((void**)&state, sizeof(int)));
    CHECK(cudaMalloc((void**)&seen, sizeof(int)));
    cudaStream_t held, other;
    CHECK(cudaStreamCreate(&held));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaMemsetAsync(state, 0, sizeof(int), held));
    CHECK(cudaMemsetAsync(seen, 0, sizeof(int), other));
    observe<<<1, 1, 0, other>>>(seen);  // loads the kernel, which would wait for the held stream later
    advance<<<1, 1, 0, held>>>(state);
    CHECK(cudaDeviceSynchronize());
    Gate gate;
    for (int i = 0; i < rounds; ++i) {
        int result = 0;
        CHECK(cudaLaunchHostFunc(held, hold, &gate));
        advance<<<1, 1, 0, held>>>(state);
        std::thread watcher(statistics, &gate, seen, other);
        CHECK(cudaMemcpyAsync(&result, state, sizeof(int), cudaMemcpyDeviceToHost, 0));
        CHECK(cudaDeviceSynchronize());
        watcher.join();
        std::printf("round %d: %d\n", i, result);
    }
    CHECK(cudaStreamDestroy(held));
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaFree(state));
    CHECK(cudaFree(seen));
    return 0;
}
