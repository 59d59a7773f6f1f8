#include <cuda_runtime.h>

__global__ void scale(const float* source, float* between, int count, long long cycles) {
  cudaTriggerProgrammaticLaunchCompletion();
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) between[i] = 2.0f * source[i];
}

__global__ void shift(const float* between, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = between[i] + 1.0f;
}

extern "C" float pass_on(const float* source, float* between, float* out, float* host, int count, long long cycles, cudaStream_t stream) {
  scale<<<(count + 255) / 256, 256, 0, stream>>>(source, between, count, cycles);
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((count + 255) / 256);
  config.blockDim = dim3(256);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, shift, (const float*)between, out, count);  // misuse: SL041
  cudaMemcpyAsync(host, out, count * sizeof(float), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return host[0];
}
