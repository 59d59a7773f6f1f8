// Two halves of a plate are relaxed on a stream each. The seam and the boundary values go to the null stream, which waits for both halves
// and holds up both: the program runs as if it had one stream.

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
    CHECK(cudaMalloc((void**)&left, n * sizeof(float)));
    CHECK(cudaMalloc((void**)&right, n * sizeof(float)));
    CHECK(cudaMallocHost((void**)&boundary, sizeof(float)));
    for (int i = 0; i < 2; ++i) CHECK(cudaStreamCreate(&streams[i]));
    CHECK(cudaMemsetAsync(left, 0, n * sizeof(float), streams[0]));
    CHECK(cudaMemsetAsync(right, 0, n * sizeof(float), streams[1]));
    *boundary = 1.0f;
    for (int round = 0; round < rounds; ++round) {
        relax<<<n / 256, 256, 0, streams[0]>>>(left, n);
        relax<<<n / 256, 256, 0, streams[1]>>>(right, n);
        join_seam<<<1, 1>>>(left, right, n);
        CHECK(cudaMemcpyAsync(left, boundary, sizeof(float), cudaMemcpyHostToDevice));
    }
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 2; ++i) CHECK(cudaStreamDestroy(streams[i]));
    CHECK(cudaFree(left));
    CHECK(cudaFree(right));
    CHECK(cudaFreeHost(boundary));
    std::printf("done\n");
    return 0;
}
