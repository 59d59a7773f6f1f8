#include <cuda_runtime.h>

__global__ void scale(float* values, float factor) { values[threadIdx.x] *= factor; }

extern "C" int record(float* left, float* right) {
  cudaStream_t trunk, branch;
  cudaEvent_t fork, join;
  cudaStreamCreateWithFlags(&trunk, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  cudaGraph_t graph;
  cudaStreamBeginCapture(trunk, cudaStreamCaptureModeGlobal);
  cudaEventRecord(fork, trunk);
  cudaStreamWaitEvent(branch, fork, 0);
  scale<<<1, 32, 0, trunk>>>(left, 2.0f);
  scale<<<1, 32, 0, branch>>>(right, 2.0f);  // misuse: SL013
  return cudaStreamEndCapture(trunk, &graph);
}
