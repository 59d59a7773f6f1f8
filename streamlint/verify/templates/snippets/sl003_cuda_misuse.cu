#include <cuda_runtime.h>

extern "C" void process(int rounds, size_t nbytes, cudaStream_t stream) {
  for (int round = 0; round < rounds; ++round) {
    void* scratch = nullptr;
    cudaMalloc(&scratch, nbytes);  // misuse: SL003
    cudaMemsetAsync(scratch, 0, nbytes, stream);
    cudaFree(scratch);
  }
}
