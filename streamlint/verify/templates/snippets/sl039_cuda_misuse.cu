#include <cuda_runtime.h>

extern "C" float copied(const float* source, float* kept, float* host, size_t count, cudaStream_t first, cudaStream_t second) {
  const size_t bytes = count * sizeof(float);
  float* numbers;
  float* other;
  cudaEvent_t written;
  cudaEventCreateWithFlags(&written, cudaEventDisableTiming);
  cudaMallocAsync((void**)&numbers, bytes, first);
  cudaMemcpyAsync(numbers, source, bytes, cudaMemcpyDeviceToDevice, first);
  cudaEventRecord(written, first);
  cudaStreamWaitEvent(second, written, 0);
  cudaMemcpyAsync(kept, numbers, bytes, cudaMemcpyDeviceToDevice, second);
  cudaFreeAsync(numbers, first);  // misuse: SL039
  cudaMallocAsync((void**)&other, bytes, first);
  cudaMemsetAsync(other, 0, bytes, first);
  cudaMemcpyAsync(host, kept, bytes, cudaMemcpyDeviceToHost, second);
  cudaStreamSynchronize(second);
  const float value = host[0];
  cudaFreeAsync(other, first);
  cudaEventDestroy(written);
  return value;
}
