"""The tensors of PyTorch in C++, by the names of their types."""

from __future__ import annotations

TENSORS = frozenset({"at::Tensor", "torch::Tensor", "at::TensorList", "torch::TensorList", "torch::stable::Tensor"})
