#include <cuda_runtime.h>

extern "C" void mark(cudaStream_t stream, int rounds) {
  cudaEvent_t done;
  cudaEventCreate(&done);  // misuse: SL023
  for (int i = 0; i < rounds; ++i) {
    cudaEventRecord(done, stream);
  }
  cudaEventSynchronize(done);
  cudaEventDestroy(done);
}
