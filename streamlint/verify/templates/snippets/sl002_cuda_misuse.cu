#include <cuda_runtime.h>

__global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2.0f;
}

extern "C" void step(float* a, float* b, float* steps, int n, cudaStream_t left, cudaStream_t right) {
  twice<<<(n + 255) / 256, 256, 0, left>>>(a, n);
  twice<<<1, 32>>>(steps, 1);  // misuse: SL002
  twice<<<(n + 255) / 256, 256, 0, right>>>(b, n);
}
