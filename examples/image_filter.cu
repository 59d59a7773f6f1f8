// Sharpen a sequence of frames on a stream: an upload from pageable memory, scratch memory in every round, one kernel on the null stream,
// and a result that is read before it is there.

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                          \
    do {                                                                     \
        cudaError_t status_ = (call);                                        \
        if (status_ != cudaSuccess) {                                        \
            std::fprintf(stderr, "%s\n", cudaGetErrorString(status_));       \
            std::exit(1);                                                    \
        }                                                                    \
    } while (0)

const int WIDTH = 1920, HEIGHT = 1080, PIXELS = WIDTH * HEIGHT;

class Buffer {
public:
    explicit Buffer(size_t n) { CHECK(cudaMalloc((void**)&data_, n * sizeof(float))); }
    ~Buffer() { cudaFree(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    float* get() const { return data_; }

private:
    float* data_ = nullptr;
};

__global__ void blur(const float* in, float* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x > 0 && x < WIDTH - 1) out[y * WIDTH + x] = (in[y * WIDTH + x - 1] + in[y * WIDTH + x] + in[y * WIDTH + x + 1]) / 3;
}

__global__ void sharpen(const float* image, const float* blurred, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < PIXELS) out[i] = 2 * image[i] - blurred[i];
}

__global__ void brightest(const float* image, int* bin) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < PIXELS) atomicMax(bin, (int)(255 * image[i]));
}

int main() {
    std::vector<float> frame(PIXELS, 0.5f);
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    Buffer image(PIXELS), out(PIXELS);
    int *bin, *peak;
    CHECK(cudaMalloc((void**)&bin, sizeof(int)));
    CHECK(cudaMallocHost((void**)&peak, sizeof(int)));
    int overexposed = 0;
    for (int round = 0; round < 100; ++round) {
        Buffer blurred(PIXELS);
        CHECK(cudaMemcpyAsync(image.get(), frame.data(), PIXELS * sizeof(float), cudaMemcpyHostToDevice, stream));
        CHECK(cudaMemsetAsync(bin, 0, sizeof(int), stream));
        blur<<<dim3(WIDTH / 128, HEIGHT), 128>>>(image.get(), blurred.get());
        sharpen<<<(PIXELS + 255) / 256, 256, 0, stream>>>(image.get(), blurred.get(), out.get());
        brightest<<<(PIXELS + 255) / 256, 256, 0, stream>>>(out.get(), bin);
        CHECK(cudaMemcpyAsync(peak, bin, sizeof(int), cudaMemcpyDeviceToHost, stream));
        if (*peak > 250) {
            ++overexposed;
        }
    }
    CHECK(cudaStreamSynchronize(stream));
    std::printf("%d frames are overexposed\n", overexposed);
    CHECK(cudaFreeHost(peak));
    CHECK(cudaFree(bin));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
