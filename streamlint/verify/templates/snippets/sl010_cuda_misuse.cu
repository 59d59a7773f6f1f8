#include <cuda_runtime.h>

#include <thread>
#include <vector>

__global__ void smooth(float* signal, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) signal[i] *= 0.5f;
}

static std::vector<float> host;

extern "C" void prepare(size_t count) { host.resize(count); }

extern "C" void bring_home(const float* field, size_t count) {
  cudaMemcpy(host.data(), field, count * sizeof(float), cudaMemcpyDeviceToHost);  // misuse: SL010
}

extern "C" void run(const float* field, size_t count, float* signal, int steps, cudaStream_t own) {
  prepare(count);
  std::thread fetcher(bring_home, field, count);
  for (int i = 0; i < steps; ++i) {
    smooth<<<64, 256, 0, own>>>(signal, 16384);
  }
  fetcher.join();
}
