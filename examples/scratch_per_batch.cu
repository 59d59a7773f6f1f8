// Scratch memory for every batch straight from the driver: each cudaFree waits for the whole device, the other stream included.

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

__global__ void embed(const float* tokens, float* hidden, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) hidden[i] = tokens[i] * 0.5f;
}

__global__ void project(const float* hidden, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = hidden[i] + 1.0f;
}

int main() {
    const int batches = 64, longest = 1 << 20;
    float *tokens[2], *out[2];
    cudaStream_t streams[2];
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaMalloc((void**)&tokens[i], longest * sizeof(float)));
        CHECK(cudaMalloc((void**)&out[i], longest * sizeof(float)));
        CHECK(cudaMemsetAsync(tokens[i], 0, longest * sizeof(float), streams[i]));
    }
    for (int batch = 0; batch < batches; ++batch) {
        const int slot = batch % 2, length = 1024 * (1 + (batch * 37) % 1000);
        float* hidden = nullptr;
        CHECK(cudaMalloc((void**)&hidden, length * sizeof(float)));
        embed<<<(length + 255) / 256, 256, 0, streams[slot]>>>(tokens[slot], hidden, length);
        project<<<(length + 255) / 256, 256, 0, streams[slot]>>>(hidden, out[slot], length);
        CHECK(cudaFree(hidden));
    }
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaStreamSynchronize(streams[i]));
        CHECK(cudaStreamDestroy(streams[i]));
        CHECK(cudaFree(tokens[i]));
        CHECK(cudaFree(out[i]));
    }
    std::printf("done\n");
    return 0;
}
