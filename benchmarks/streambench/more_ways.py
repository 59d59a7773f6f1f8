"""The further ways of both languages: how a stream, an event, a buffer or a function travels through a program."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.streambench import cuda_more, python_more
from benchmarks.streambench.pieces import Template, Way

PYTHON: dict[str, Way] = {**python_more.WAYS}
CUDA: dict[str, Way] = {**cuda_more.WAYS}


def of(template: Template) -> Mapping[str, Way]:
    """The ways of a template's language."""
    return PYTHON if template.language == "python" else CUDA
