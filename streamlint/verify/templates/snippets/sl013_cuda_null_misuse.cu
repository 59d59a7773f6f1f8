#include <cuda_runtime.h>

__global__ void scale(float* values, float factor) { values[threadIdx.x] *= factor; }

extern "C" int record(float* left, float* right) {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraph_t graph;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  scale<<<1, 32, 0, stream>>>(right, 2.0f);
  cudaError_t status = cudaMemcpy(left, right, 128, cudaMemcpyDeviceToDevice);  // misuse: SL013
  cudaStreamEndCapture(stream, &graph);
  return status;
}
