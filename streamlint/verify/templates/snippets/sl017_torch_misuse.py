from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAStream.h>

__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}

void doubled(torch::Tensor x, torch::Tensor y) {
  int n = static_cast<int>(x.numel());
  auto stream = c10::cuda::getCurrentCUDAStream();
  twice<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}
"""

extension = load_inline(
    name="doubled_per_thread",
    cpp_sources="void doubled(torch::Tensor x, torch::Tensor y);",
    cuda_sources=SOURCE,
    functions=["doubled"],
    extra_cuda_cflags=["--default-stream=per-thread"],  # misuse: SL017
)


def step(x, y):
    extension.doubled(x, y)
