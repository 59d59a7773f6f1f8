"""Which C++ files are part of a PyTorch extension: by what they include, by the tensors that they take, by who links them."""

from __future__ import annotations

import re

from streamlint import program as p
from streamlint.interpreter.index import File, is_declaration
from streamlint.interpreter.questions import question

_HEADERS = (
    "torch/extension.h",
    "torch/torch.h",
    "torch/script.h",
    "torch/all.h",
    "torch/library.h",
    "torch/types.h",
    "ATen/",
    "c10/cuda",
    "torch/serialize",
    "torch/csrc/stable/",
)
BINDS = ("PYBIND11_MODULE", "NB_MODULE", "TORCH_LIBRARY", "RegisterOperators")
TENSORS = frozenset({"at::Tensor", "torch::Tensor", "at::TensorList", "torch::TensorList", "torch::stable::Tensor"})


@question
def is_torch_extension(file: File) -> bool:
    """Whether the work of a C++ file is done for PyTorch, on a stream that the caller has chosen."""
    return not is_own_program(file) and (_works_on_tensors(file) or _is_linked(file))


def is_own_program(file: File) -> bool:
    """Whether a file is a program that nobody calls: it has a ``main`` and binds nothing."""
    begins = any(not is_declaration(function) and not function.class_name for function in file.functions.get("main", ()))
    return begins and not any(word in file.module.text for word in BINDS)


def _works_on_tensors(file: File) -> bool:
    files = (file, *file.neighbours())
    included = any(i.startswith(_HEADERS) for other in files for i in other.module.includes)
    return (included and not _binds_no_tensors(file, files)) or _takes_tensors(file)


def _binds_no_tensors(file: File, files: tuple[File, ...]) -> bool:
    """Whether a file says itself what Python calls in it, and nothing at hand speaks of PyTorch: a binding that is built by its helpers."""
    return "PYBIND11_MODULE" in file.module.text and not any(_SPEAKS.search(other.module.text) for other in files)


_SPEAKS = re.compile(r"\b(?:at|c10|torch)::|Tensor\b|data_ptr|CUDAStream")


def _takes_tensors(file: File) -> bool:
    """Host functions take or give tensors: so an extension shows whose headers are not at hand."""
    if "Tensor" not in file.module.text:
        return False
    kinds = (
        kind
        for function, _ in p.functions_of(file.module)
        if function.space == "host"
        for kind in (function.returns, *(param.type for param in function.params))
    )
    return any(kind is not None and file.resolve_type(kind).name in TENSORS for kind in kinds)


def _is_linked(file: File) -> bool:
    """Whether an extension declares one of the functions that stand here: kernels and their launchers in a file of plain pointers."""
    declared = file.program.declared_by_extensions
    if declared is None:
        declared = frozenset(
            function.qualname
            for other in file.program.cpp(file)
            if _works_on_tensors(other)
            for function, _ in p.functions_of(other.module)
            if function.space == "host" and is_declaration(function) and not function.class_name
        )
        file.program.declared_by_extensions = declared
    return bool(declared) and any(
        function.qualname in declared and not function.static and not function.class_name and not is_declaration(function)
        for function, _ in p.functions_of(file.module)
    )
