#include <cuda_runtime.h>

extern "C" float copied(const float* source, float* result, float* host, size_t count, cudaStream_t stream) {
  const size_t bytes = count * sizeof(float);
  float* numbers;
  float* other;
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  cudaMallocAsync((void**)&numbers, bytes, stream);
  cudaMemcpyAsync(numbers, source, bytes, cudaMemcpyDeviceToDevice, stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  cudaMemcpyAsync(result, numbers, bytes, cudaMemcpyDeviceToDevice, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiateWithFlags(&replay, graph, 0);
  cudaMallocAsync((void**)&other, bytes, stream);
  cudaMemsetAsync(other, 0, bytes, stream);
  cudaGraphLaunch(replay, stream);
  cudaMemcpyAsync(host, result, bytes, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  const float value = host[0];
  cudaFreeAsync(numbers, stream);
  cudaFreeAsync(other, stream);
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  return value;
}
