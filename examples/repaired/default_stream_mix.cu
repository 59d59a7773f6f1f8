// Two halves of a plate are relaxed on a stream each; events order the seam between them, and nothing else waits.

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

__global__ void relax(float* half, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) half[i] += 0.1f * (half[i - 1] - 2 * half[i] + half[i + 1]);
}

__global__ void join_seam(float* left, float* right, int n) {
    float mean = 0.5f * (left[n - 1] + right[0]);
    left[n - 1] = mean;
    right[0] = mean;
}

int main() {
    const int n = 1 << 20, rounds = 500;
    float *left, *right, *boundary;
    cudaStream_t streams[2];
    cudaEvent_t relaxed, joined;
    CHECK(cudaMalloc((void**)&left, n * sizeof(float)));
    CHECK(cudaMalloc((void**)&right, n * sizeof(float)));
    CHECK(cudaMallocHost((void**)&boundary, sizeof(float)));
    for (int i = 0; i < 2; ++i) CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&relaxed, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    CHECK(cudaMemsetAsync(left, 0, n * sizeof(float), streams[0]));
    CHECK(cudaMemsetAsync(right, 0, n * sizeof(float), streams[1]));
    *boundary = 1.0f;
    for (int round = 0; round < rounds; ++round) {
        relax<<<n / 256, 256, 0, streams[0]>>>(left, n);
        relax<<<n / 256, 256, 0, streams[1]>>>(right, n);
        CHECK(cudaEventRecord(relaxed, streams[1]));
        CHECK(cudaStreamWaitEvent(streams[0], relaxed, 0));
        join_seam<<<1, 1, 0, streams[0]>>>(left, right, n);
        CHECK(cudaMemcpyAsync(left, boundary, sizeof(float), cudaMemcpyHostToDevice, streams[0]));
        CHECK(cudaEventRecord(joined, streams[0]));
        CHECK(cudaStreamWaitEvent(streams[1], joined, 0));
    }
    for (int i = 0; i < 2; ++i) CHECK(cudaStreamSynchronize(streams[i]));
    for (int i = 0; i < 2; ++i) CHECK(cudaStreamDestroy(streams[i]));
    CHECK(cudaEventDestroy(relaxed));
    CHECK(cudaEventDestroy(joined));
    CHECK(cudaFree(left));
    CHECK(cudaFree(right));
    CHECK(cudaFreeHost(boundary));
    std::printf("done\n");
    return 0;
}
