#include <cuda_runtime.h>

extern "C" float pass_on(const float* source, float* between, float* host, size_t count, cudaStream_t first, cudaStream_t second) {
  cudaEvent_t written;
  cudaEventCreateWithFlags(&written, cudaEventDisableTiming);
  cudaMemcpyAsync(between, source, count * sizeof(float), cudaMemcpyDeviceToDevice, first);
  cudaEventRecord(written, first);
  cudaStreamWaitEvent(second, written, 0);
  cudaMemcpyAsync(host, between, count * sizeof(float), cudaMemcpyDeviceToHost, second);
  cudaStreamSynchronize(second);
  cudaEventDestroy(written);
  return host[0];
}
