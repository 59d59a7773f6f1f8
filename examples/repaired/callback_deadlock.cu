// The thread that queues the work waits for the gate itself, so no stream is ever held by the host; the result comes home through pinned
// memory on the stream that made it.

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

static void statistics(Gate* gate, int* seen, cudaStream_t stream) {
    observe<<<1, 1, 0, stream>>>(seen);
    gate->unlock();
}

int main() {
    const int rounds = 4;
    int *state, *seen, *result;
    CHECK(cudaMalloc((void**)&state, sizeof(int)));
    CHECK(cudaMalloc((void**)&seen, sizeof(int)));
    CHECK(cudaMallocHost((void**)&result, sizeof(int)));
    cudaStream_t work, other;
    CHECK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaMemsetAsync(state, 0, sizeof(int), work));
    CHECK(cudaMemsetAsync(seen, 0, sizeof(int), other));
    Gate gate;
    for (int i = 0; i < rounds; ++i) {
        std::thread watcher(statistics, &gate, seen, other);
        gate.pass();
        advance<<<1, 1, 0, work>>>(state);
        CHECK(cudaMemcpyAsync(result, state, sizeof(int), cudaMemcpyDeviceToHost, work));
        CHECK(cudaStreamSynchronize(work));
        watcher.join();
        std::printf("round %d: %d\n", i, *result);
    }
    CHECK(cudaStreamSynchronize(other));
    CHECK(cudaStreamDestroy(work));
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaFreeHost(result));
    CHECK(cudaFree(state));
    CHECK(cudaFree(seen));
    return 0;
}
