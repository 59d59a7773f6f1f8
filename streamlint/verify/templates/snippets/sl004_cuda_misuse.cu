#include <cuda_runtime.h>

struct Job {
  float* buffer;
  cudaError_t status;
};

static void release(void* data) {
  Job* job = static_cast<Job*>(data);
  job->status = cudaFree(job->buffer);  // misuse: SL004
}

extern "C" int finish(float* buffer, cudaStream_t stream) {
  Job job{buffer, cudaSuccess};
  cudaLaunchHostFunc(stream, release, &job);
  cudaStreamSynchronize(stream);
  return job.status;
}
