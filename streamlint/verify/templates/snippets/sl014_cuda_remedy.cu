#include <cuda_runtime.h>

extern "C" float read_back(const float* source, float* between, float* host, size_t count, cudaStream_t upstream) {
  cudaStream_t work;
  cudaEvent_t ready;
  cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
  cudaEventRecord(ready, upstream);
  cudaStreamWaitEvent(work, ready, 0);
  cudaMemcpyAsync(between, source, count * sizeof(float), cudaMemcpyDeviceToDevice, work);
  cudaMemcpyAsync(host, between, count * sizeof(float), cudaMemcpyDeviceToHost, work);
  cudaStreamSynchronize(work);
  const float value = host[0];
  cudaEventDestroy(ready);
  cudaStreamDestroy(work);
  return value;
}
