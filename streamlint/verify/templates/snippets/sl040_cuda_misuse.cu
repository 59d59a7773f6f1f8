#include <cuda_runtime.h>

extern "C" void process(int rounds, size_t nbytes, cudaStream_t stream) {
  for (int round = 0; round < rounds; ++round) {
    void* scratch = nullptr;
    cudaMallocAsync(&scratch, nbytes, stream);  // misuse: SL040
    cudaMemsetAsync(scratch, 0, nbytes, stream);
    cudaFreeAsync(scratch, stream);
    cudaStreamSynchronize(stream);
  }
}
