#include <cuda_runtime.h>

extern "C" float uploaded(float value, float* target, cudaStream_t stream) {
  float* staging;
  float result = 0.0f;
  cudaMallocHost(&staging, sizeof(float));
  staging[0] = value;
  cudaMemcpyAsync(target, staging, sizeof(float), cudaMemcpyHostToDevice, stream);
  staging[0] = -1.0f;  // misuse: SL008
  cudaStreamSynchronize(stream);
  cudaMemcpy(&result, target, sizeof(float), cudaMemcpyDeviceToHost);
  cudaFreeHost(staging);
  return result;
}
