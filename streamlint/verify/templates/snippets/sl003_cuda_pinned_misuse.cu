#include <cuda_runtime.h>

#include <cstring>

extern "C" void process(int rounds, size_t nbytes, char* device, cudaStream_t stream) {
  for (int round = 0; round < rounds; ++round) {
    char* staging = nullptr;
    cudaMallocHost(&staging, nbytes);  // misuse: SL003
    memset(staging, round, nbytes);
    cudaMemcpyAsync(device, staging, nbytes, cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
    cudaFreeHost(staging);
  }
}
