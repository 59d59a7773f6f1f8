import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>

__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}

torch::Tensor doubled(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = static_cast<int>(x.numel());
  auto stream = c10::cuda::getCurrentCUDAStream();
  twice<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);  // misuse: SL035
  return y;
}
"""

extension = load_inline(
    name="doubled_without_guard",
    cpp_sources="torch::Tensor doubled(torch::Tensor x);",
    cuda_sources=SOURCE,
    functions=["doubled"],
)


def total(count, number):
    x = torch.zeros(count, device="cuda:1")
    with torch.cuda.device(1):
        torch.cuda._sleep(100_000_000)
    x.fill_(number)
    y = extension.doubled(x)
    return y.sum().item()
