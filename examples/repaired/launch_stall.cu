// Two threads with a stream each: one copies large fields into pinned memory, the other launches small kernels and notes how long a launch
// took.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>

#define CHECK(call)                                                          \
    do {                                                                     \
        cudaError_t status_ = (call);                                        \
        if (status_ != cudaSuccess) {                                        \
            std::fprintf(stderr, "%s\n", cudaGetErrorString(status_));       \
            std::exit(1);                                                    \
        }                                                                    \
    } while (0)

__global__ void grow(float* field, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) field[i] = field[i] * 1.001f + 1.0f;
}

__global__ void blink(int* light) { *light ^= 1; }

static void bring_home(float* field, float* home, size_t n, cudaStream_t stream, std::atomic<bool>* stop) {
    while (!*stop) {
        grow<<<(n + 255) / 256, 256, 0, stream>>>(field, n);
        CHECK(cudaMemcpyAsync(home, field, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
    }
}

static void launch(int* light, cudaStream_t stream, std::atomic<bool>* stop, double* longest) {
    using clock = std::chrono::steady_clock;
    while (!*stop) {
        auto before = clock::now();
        blink<<<1, 1, 0, stream>>>(light);
        *longest = std::max(*longest, std::chrono::duration<double, std::milli>(clock::now() - before).count());
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    CHECK(cudaStreamSynchronize(stream));
}

int main() {
    const size_t n = 64 << 20;
    float *field, *home;
    int* light;
    cudaStream_t copies, blinks;
    CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&blinks, cudaStreamNonBlocking));
    CHECK(cudaMalloc((void**)&field, n * sizeof(float)));
    CHECK(cudaMalloc((void**)&light, sizeof(int)));
    CHECK(cudaMallocHost((void**)&home, n * sizeof(float)));
    CHECK(cudaMemsetAsync(field, 0, n * sizeof(float), copies));
    CHECK(cudaMemsetAsync(light, 0, sizeof(int), blinks));
    std::atomic<bool> stop{false};
    double longest = 0;
    std::thread copier(bring_home, field, home, n, copies, &stop);
    std::thread launcher(launch, light, blinks, &stop, &longest);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    stop = true;
    copier.join();
    launcher.join();
    std::printf("longest launch: %.2f ms\n", longest);
    CHECK(cudaFreeHost(home));
    CHECK(cudaFree(field));
    CHECK(cudaFree(light));
    CHECK(cudaStreamDestroy(copies));
    CHECK(cudaStreamDestroy(blinks));
    return 0;
}
