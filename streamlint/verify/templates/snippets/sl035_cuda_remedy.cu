#include <cuda_runtime.h>
#include <thread>

extern "C" int run() {
  cudaSetDevice(1);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaError_t status = cudaSuccess;
  std::thread worker([&] {
    cudaSetDevice(1);
    cudaEvent_t done;
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    status = cudaEventRecord(done, stream);
    cudaEventDestroy(done);
  });
  worker.join();
  cudaStreamDestroy(stream);
  cudaSetDevice(0);
  return status;
}
