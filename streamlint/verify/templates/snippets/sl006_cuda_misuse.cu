#include <cuda_runtime.h>

extern "C" float pass_on(const float* source, float* between, float* host, size_t count, cudaStream_t first, cudaStream_t second) {
  cudaMemcpyAsync(between, source, count * sizeof(float), cudaMemcpyDeviceToDevice, first);
  cudaMemcpyAsync(host, between, count * sizeof(float), cudaMemcpyDeviceToHost, second);  // misuse: SL006
  cudaStreamSynchronize(second);
  return host[0];
}
