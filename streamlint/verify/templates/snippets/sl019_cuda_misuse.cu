#include <chrono>
#include <cuda_runtime.h>

extern "C" double exchange(size_t bytes, int rounds) {
  char *here, *there;
  cudaStream_t stream;
  cudaSetDevice(1);
  cudaMalloc(&there, bytes);
  cudaSetDevice(0);
  cudaMalloc(&here, bytes);
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) {
    cudaMemcpyPeerAsync(there, 1, here, 0, bytes, stream);  // misuse: SL019
  }
  cudaStreamSynchronize(stream);
  auto spent = std::chrono::steady_clock::now() - start;
  cudaStreamDestroy(stream);
  cudaFree(here);
  cudaFree(there);
  return std::chrono::duration<double, std::milli>(spent).count();
}

int main() { return exchange(256 << 20, 4) > 0.0 ? 0 : 1; }
