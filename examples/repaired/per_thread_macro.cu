// Each thread works on a stream of its own, which needs no build option.

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>
#include <vector>

#define CHECK(call)                                                          \
    do {                                                                     \
        cudaError_t status_ = (call);                                        \
        if (status_ != cudaSuccess) {                                        \
            std::fprintf(stderr, "%s\n", cudaGetErrorString(status_));       \
            std::exit(1);                                                    \
        }                                                                    \
    } while (0)

__global__ void integrate(float* state, int rounds) {
    float x = state[threadIdx.x];
    for (int r = 0; r < rounds; ++r) x = x * 0.999f + 0.001f;
    state[threadIdx.x] = x;
}

static void worker(float* state) {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMemsetAsync(state, 0, 256 * sizeof(float), stream));
    for (int i = 0; i < 100; ++i) integrate<<<1, 256, 0, stream>>>(state, 10000);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
}

int main() {
    std::vector<float*> states(4);
    std::vector<std::thread> threads;
    for (float*& state : states) CHECK(cudaMalloc((void**)&state, 256 * sizeof(float)));
    for (float* state : states) threads.emplace_back(worker, state);
    for (std::thread& thread : threads) thread.join();
    for (float* state : states) CHECK(cudaFree(state));
    return 0;
}
