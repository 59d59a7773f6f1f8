#include <cuda_runtime.h>

extern "C" float read_loss(const float* losses, float* host, size_t count, cudaStream_t stream) {
  cudaMemcpyAsync(host, losses, count * sizeof(float), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return host[0];
}
