import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/types.h>

__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}

torch::Tensor doubled(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = static_cast<int>(x.numel());
  twice<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);  // misuse: SL002
  return y;
}
"""

extension = load_inline(
    name="doubled_on_null",
    cpp_sources="torch::Tensor doubled(torch::Tensor x);",
    cuda_sources=SOURCE,
    functions=["doubled"],
)


def step(x, side):
    with torch.cuda.stream(side):
        x.fill_(1.0)
        y = extension.doubled(x)
        return y.sum().item()
