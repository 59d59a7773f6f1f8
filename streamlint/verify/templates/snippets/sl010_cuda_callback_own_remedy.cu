#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

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
  cudaStream_t copies;
  cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking);
  std::vector<float> host(count);
  cudaEvent_t held;
  cudaEventCreateWithFlags(&held, cudaEventDisableTiming);
  cudaLaunchHostFunc(side, hold, &go);
  cudaEventRecord(held, side);
  cudaStreamWaitEvent(copies, held);
  std::thread worker(work, state, own, &go);
  cudaMemcpyAsync(host.data(), result, count * sizeof(float), cudaMemcpyDeviceToHost, copies);  // misuse: SL001
  worker.join();
  cudaStreamSynchronize(copies);
  cudaEventDestroy(held);
  cudaStreamDestroy(copies);
}
