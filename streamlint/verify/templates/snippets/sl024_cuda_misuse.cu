#include <cuda_runtime.h>

extern "C" void wait_for(cudaStream_t stream) {
  cudaEvent_t done;
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming | cudaEventBlockingSync);
  cudaEventRecord(done, stream);
  while (cudaEventQuery(done) == cudaErrorNotReady) {  // misuse: SL024
  }
  cudaEventDestroy(done);
}
