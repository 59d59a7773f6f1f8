#include <cstdint>

#include <cuda_runtime.h>

extern "C" void process(int rounds, size_t nbytes, cudaStream_t stream) {
  cudaMemPool_t pool;
  cudaDeviceGetDefaultMemPool(&pool, 0);
  uint64_t threshold = UINT64_MAX;
  cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
  for (int round = 0; round < rounds; ++round) {
    void* scratch = nullptr;
    cudaMallocAsync(&scratch, nbytes, stream);
    cudaMemsetAsync(scratch, 0, nbytes, stream);
    cudaFreeAsync(scratch, stream);
    cudaStreamSynchronize(stream);
  }
}
