// Two threads share the null stream: one copies large fields into pageable memory, the other launches small kernels and notes how long a
// launch took. While a copy waits, the launches of the other thread are held up.

#include <algorithm>
#include <atomic>
#include <chrono>
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

__global__ void grow(float* field, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) field[i] = field[i] * 1.001f + 1.0f;
}

__global__ void blink(int* light) { *light ^= 1; }

static void bring_home(float* field, size_t n, std::atomic<bool>* stop) {
    std::vector<float> home(n);
    while (!*stop) {
        grow<<<(n + 255) / 256, 256>>>(field, n);
        CHECK(cudaMemcpy(home.data(), field, n * sizeof(float), cudaMemcpyDeviceToHost));
    }
}

static void launch(int* light, std::atomic<bool>* stop, double* longest) {
    using clock = std::chrono::steady_clock;
    while (!*stop) {
        auto before = clock::now();
        blink<<<1, 1>>>(light);
        *longest = std::max(*longest, std::chrono::duration<double, std::milli>(clock::now() - before).count());
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

int main() {
    const size_t n = 64 << 20;
    float* field;
    int* light;
    CHECK(cudaMalloc((void**)&field, n * sizeof(float)));
    CHECK(cudaMalloc((void**)&light, sizeof(int)));
    CHECK(cudaMemset(field, 0, n * sizeof(float)));
    CHECK(cudaMemset(light, 0, sizeof(int)));
    std::atomic<bool> stop{false};
    double longest = 0;
    std::thread copier(bring_home, field, n, &stop);
    std::thread launcher(launch, light, &stop, &longest);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    stop = true;
    copier.join();
    launcher.join();
    std::printf("longest launch: %.2f ms\n", longest);
    CHECK(cudaFree(field));
    CHECK(cudaFree(light));
    return 0;
}
