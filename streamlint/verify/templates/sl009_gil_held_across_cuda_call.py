"""SL009: a function of an extension waits for the GPU with the GIL held, and no other Python thread runs meanwhile."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib.machinery import ExtensionFileLoader
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, LabError

RULE, NAME = "SL009", "gil-held-across-cuda-call"
_HELD = "no other Python thread runs until the call returns"


def _extension(path: str) -> Any:
    """The library as the Python module that it is: what its functions do with the GIL then counts."""
    spec = importlib.util.spec_from_file_location("pipeline", path, loader=ExtensionFileLoader("pipeline", path))
    if spec is None or spec.loader is None:
        raise LabError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    module = lab.keep(_extension(library._name))
    stream = lab.stream(blocking=False)
    return Trial(lambda: module.finish(stream.ptr), gate=stream.ptr)


CASES = (Case(RULE, "extension_function", "cuda", Experiment.GIL_HELD, _HELD, "sl009_cuda", _cuda, needs=("python-headers",)),)
