#include <cuda_runtime.h>

#include <cstdlib>

// Starts the upload of a fresh batch. The caller frees the batch once the stream has passed the copy.
extern "C" float* upload(float* device, size_t count, cudaStream_t stream) {
  float* batch = static_cast<float*>(malloc(count * sizeof(float)));
  for (size_t i = 0; i < count; ++i) batch[i] = 1.0f;
  cudaMemcpyAsync(device, batch, count * sizeof(float), cudaMemcpyHostToDevice, stream);  // misuse: SL001
  return batch;
}
