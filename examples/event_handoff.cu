// One stream produces, another consumes, and nothing says in which order.

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

__global__ void produce(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i;
}

__global__ void consume(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

int main() {
    const int n = 1 << 22;
    float *x, *y;
    cudaStream_t producer, consumer;
    CHECK(cudaMalloc((void**)&x, n * sizeof(float)));
    CHECK(cudaMalloc((void**)&y, n * sizeof(float)));
    CHECK(cudaStreamCreateWithFlags(&producer, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking));
    produce<<<n / 256, 256, 0, producer>>>(x, n);
    consume<<<n / 256, 256, 0, consumer>>>(x, y, n);
    CHECK(cudaStreamSynchronize(consumer));
    CHECK(cudaStreamSynchronize(producer));
    CHECK(cudaStreamDestroy(producer));
    CHECK(cudaStreamDestroy(consumer));
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    return 0;
}
