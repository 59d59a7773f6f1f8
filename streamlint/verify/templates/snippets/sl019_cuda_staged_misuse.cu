#include <cuda_runtime.h>

static char *here, *there;

extern "C" void prepare(size_t bytes) {
  cudaSetDevice(1);
  cudaMalloc(&there, 2 * bytes);
  cudaSetDevice(0);
  cudaMalloc(&here, 2 * bytes);
}

static void send(size_t offset, size_t bytes, cudaStream_t stream) {
  cudaMemcpyPeerAsync(there + offset, 1, here + offset, 0, bytes, stream);  // misuse: SL019
}

extern "C" void exchange(size_t bytes, cudaStream_t busy, cudaStream_t idle) {
  send(0, bytes, busy);
  send(bytes, bytes, idle);
}

int main() {
  cudaStream_t left, right;
  cudaStreamCreateWithFlags(&left, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&right, cudaStreamNonBlocking);
  prepare(16 << 20);
  exchange(16 << 20, left, right);
  return cudaDeviceSynchronize();
}
