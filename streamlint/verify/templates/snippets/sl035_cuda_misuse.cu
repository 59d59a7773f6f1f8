#include <cuda_runtime.h>
#include <thread>

__global__ void fill(float* values, int count, float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = value;
}

extern "C" int run(int count) {
  cudaSetDevice(1);
  cudaStream_t stream;
  float* values;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMallocAsync(&values, count * sizeof(float), stream);
  cudaStreamSynchronize(stream);
  cudaError_t status = cudaSuccess;
  std::thread worker([&] {
    fill<<<(count + 255) / 256, 256, 0, stream>>>(values, count, 1.0f);  // misuse: SL035
    status = cudaGetLastError();
  });
  worker.join();
  cudaFreeAsync(values, stream);
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  cudaSetDevice(0);
  return status;
}
