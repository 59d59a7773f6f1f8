#include <cuda_runtime.h>

extern "C" float read_back(const float* source, float* between, float* host, size_t count, cudaStream_t upstream) {
  cudaStream_t work;
  cudaEvent_t ready;
  cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
  cudaEventRecord(ready, upstream);
  cudaStreamWaitEvent(work, ready, 0);
  cudaMemcpyAsync(between, source, count * sizeof(float), cudaMemcpyDeviceToDevice, work);
  cudaMemcpy(host, between, count * sizeof(float), cudaMemcpyDeviceToHost);  // misuse: SL014
  const float value = host[0];
  cudaStreamSynchronize(work);
  cudaEventDestroy(ready);
  cudaStreamDestroy(work);
  return value;
}
