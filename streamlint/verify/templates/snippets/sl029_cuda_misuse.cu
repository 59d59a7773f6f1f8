#include <cuda_runtime.h>

__global__ void twice(float* block, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) block[i] *= 2.0f;
}

extern "C" void transform(float* blocks, int count, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);  // misuse: SL029
    twice<<<(count + 255) / 256, 256, 0, stream>>>(blocks + round * count, count);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
}
