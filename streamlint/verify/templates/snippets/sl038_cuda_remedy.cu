#include <cuda_runtime.h>

__global__ void fill(float* out, size_t count, float value) {
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) out[i] = value;
}

extern "C" float renew(float* host, size_t count, float value, cudaStream_t first, cudaStream_t second) {
  const size_t nbytes = count * sizeof(float);
  float *old = nullptr, *rows = nullptr;
  cudaMallocAsync(&old, nbytes, first);
  fill<<<1, 256, 0, first>>>(old, count, -1.0f);
  cudaFreeAsync(old, first);

  cudaMallocAsync(&rows, nbytes, first);
  cudaEvent_t allocated;
  cudaEventCreateWithFlags(&allocated, cudaEventDisableTiming);
  cudaEventRecord(allocated, first);
  cudaStreamWaitEvent(second, allocated, 0);
  fill<<<1, 256, 0, second>>>(rows, count, value);

  cudaEvent_t filled;
  cudaEventCreateWithFlags(&filled, cudaEventDisableTiming);
  cudaEventRecord(filled, second);
  cudaStreamWaitEvent(first, filled, 0);
  cudaMemcpyAsync(host, rows, nbytes, cudaMemcpyDeviceToHost, first);
  cudaFreeAsync(rows, first);
  cudaStreamSynchronize(first);
  cudaEventDestroy(allocated);
  cudaEventDestroy(filled);
  return host[0];
}
