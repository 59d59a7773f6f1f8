#include <cuda_runtime.h>

__global__ void scale(float* values, float factor) { values[threadIdx.x] *= factor; }

extern "C" int record(float* left, float* right) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaGraph_t graph;
  float* scratch = nullptr;
  cudaError_t status = cudaMalloc(&scratch, 128);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  scale<<<1, 32, 0, stream>>>(right, 2.0f);
  cudaStreamEndCapture(stream, &graph);
  return status;
}
