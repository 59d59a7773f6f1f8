#include <cuda_runtime.h>

__global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2.0f;
}

extern "C" void step(float* x, int n) { twice<<<(n + 255) / 256, 256, 0, cudaStreamPerThread>>>(x, n); }
