#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <thread>

__global__ void step(float* state) { state[0] += 1.0f; }

// Holds its stream until another thread says go.
void hold(void* go) {
  while (!static_cast<std::atomic<bool>*>(go)->load()) std::this_thread::yield();
}

void work(float* state, cudaStream_t own, std::atomic<bool>* go) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it comes later than the copy
  step<<<1, 1, 0, own>>>(state);
  go->store(true);
}

extern "C" void fetch(const float* result, size_t count, float* state, cudaStream_t side, cudaStream_t own) {
  std::atomic<bool> go{false};
  float* host = nullptr;
  cudaMallocHost(&host, count * sizeof(float));
  cudaEvent_t held;
  cudaEventCreateWithFlags(&held, cudaEventDisableTiming);
  cudaLaunchHostFunc(side, hold, &go);
  cudaEventRecord(held, side);
  cudaStreamWaitEvent(0, held);
  std::thread worker(work, state, own, &go);
  cudaMemcpyAsync(host, result, count * sizeof(float), cudaMemcpyDeviceToHost, 0);
  worker.join();
  cudaStreamSynchronize(0);
  cudaEventDestroy(held);
  cudaFreeHost(host);
}
