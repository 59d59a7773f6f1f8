// Copies between two GPUs that never enabled peer access: they are staged through the host, and the second one, on a stream of its own,
// does not start before the first is done.

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                          \
    do {                                                                     \
        cudaError_t status_ = (call);                                        \
        if (status_ != cudaSuccess) {                                        \
            std::fprintf(stderr, "%s\n", cudaGetErrorString(status_));       \
            std::exit(1);                                                    \
        }                                                                    \
    } while (0)

__global__ void work(float* x, size_t n, int rounds) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int r = 0; r < rounds; ++r) x[i] = x[i] * 0.999f + 0.001f;
}

int main() {
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices < 2) {
        std::printf("needs two GPUs\n");
        return 0;
    }
    const size_t n = 64 << 20, bytes = n * sizeof(float);
    float *here[2], *there[2];
    cudaStream_t streams[2];
    CHECK(cudaSetDevice(1));
    for (int i = 0; i < 2; ++i) CHECK(cudaMalloc((void**)&there[i], bytes));
    CHECK(cudaSetDevice(0));
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaMalloc((void**)&here[i], bytes));
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaMemsetAsync(here[i], 0, bytes, streams[i]));
    }
    work<<<(n + 255) / 256, 256, 0, streams[0]>>>(here[0], n, 2000);
    CHECK(cudaMemcpyAsync(there[0], here[0], bytes, cudaMemcpyDeviceToDevice, streams[0]));
    CHECK(cudaMemcpyAsync(there[1], here[1], bytes, cudaMemcpyDeviceToDevice, streams[1]));
    for (int i = 0; i < 2; ++i) CHECK(cudaStreamSynchronize(streams[i]));
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaStreamDestroy(streams[i]));
        CHECK(cudaFree(here[i]));
        CHECK(cudaFree(there[i]));
    }
    return 0;
}
