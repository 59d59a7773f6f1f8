"""Which macros only check the value of one argument."""

from __future__ import annotations

import re
from collections.abc import Mapping

from streamlint.frontends.cuda_preprocess import Macro

# Names that check a status in many projects, whether macro or function.
KNOWN_CHECK = re.compile(
    r"check(?:ed|Cuda(?:Errors?)?|CUDA|CudnnErr|CUDNN|CublasErrors|KernelErrors|_cuda)?|gpu(?:Err[cC]hk|ErrCheck|Assert|Check|_check)"
    r"|cuda(?:Check|CheckErrors?|Errchk|ErrCheck|SafeCall|_check|_try)|_*[cC]udaSafeCall|Cuda(?:Check|CheckError|Call)|CUDACheck|CUDAErrorCheck"
    r"|cutil(?:SafeCall|CheckError)|Check(?:Cuda|CUDA)|safe_(?:cuda|call)|[eE]rr[cC]hk|DSCuda|[hH]andleError|throw_?[oO]n_?[eE]rror"
)
_QUERIES = (
    r"(?:cuda|hip)(?:GetErrorString|GetErrorName|GetLastError|PeekAtLastError)|cuGetError\w+|cudaSuccess|cudaGetDevice"
    r"|(?:cublas|cufft|cusparse|curand|cusolver|cudnn|nccl)\w*Get\w*Error\w*|cublasGetStatus\w*"
)
_EFFECT = re.compile(
    rf"<<\s*<|\b(?!(?:{_QUERIES})\b)(?:cuda|cu|hip|nccl|cublas|cudnn|cufft|cusparse|curand)[A-Z]\w*\s*\(|[Ss]ynchronize\w*\s*\("
    r"|gil_scoped|Py_BEGIN_ALLOW|Py_END_ALLOW|PyEval_\w+Thread|PyGILState"
)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b(?=\s*\()")
_BRANCHING = re.compile(r"\b(?:switch|for)\b|\bwhile\b(?!\s*\(\s*(?:0|false)\s*\))")
_ABOUT_ERRORS = re.compile(
    r"err|check|assert|safe|verify|throw|success|status|abort|exit|fatal|fail|result|rc\b|ret\b|LOG|try|__FILE__|__LINE__", re.I
)


def has_effects(body: str, macros: Mapping[str, Macro], depth: int = 0) -> bool:
    """Whether a macro body works on the GPU or with the GIL itself, beside evaluating its arguments."""
    if _EFFECT.search(body):
        return True
    if depth > 5:
        return False
    return any(word in macros and has_effects(macros[word].body, macros, depth + 1) for word in _WORD.findall(body))


def checked_parameter(macro: Macro, macros: Mapping[str, Macro]) -> int | None:
    """The position of the argument that a check macro evaluates, or None if the macro does something else."""
    body = macro.body
    if not macro.params or _BRANCHING.search(body) or not _ABOUT_ERRORS.search(macro.name + body) or has_effects(body, macros):
        return None
    checked = [position for position, param in enumerate(macro.params) if _is_checked(param, body)]
    if not checked or any(_is_called(param, body) for param in macro.params):
        return None
    if not re.search(r"[;{]|\A\s*if\b", body) and not _wraps(body):
        return None
    return checked[0]


def _is_checked(param: str, body: str) -> bool:
    name = re.escape(param)
    plain = re.sub(rf"#\s*{name}\b", "", body)
    if len(re.findall(rf"\b{name}\b", plain)) != 1:
        return False
    value = rf"\(*\s*{name}(?!\s*\)*\s*(?:->|\.|\[))\s*\)*"
    return bool(re.search(rf"(?:=|\(|,|\{{|;|\}}|^|\breturn|[=!]=|\bif)\s*{value}\s*(?:;|,|\)|\}}|$|[!=]=)", plain))


def _is_called(param: str, body: str) -> bool:
    return bool(re.search(rf"(?<!#)\b{re.escape(param)}\b\s*(?:\(|\.|->|\[|<|\+|\*|/|%)", body))


def _wraps(body: str) -> bool:
    """Whether the body is one call of a checking function around the parameter."""
    return bool(re.search(r"__FILE__|__LINE__|__func__|__FUNCTION__|#\s*\w", body)) or bool(
        re.match(r"\(?\s*(?:::|\w+::)*(\w*(?:check|assert|err|safe|verify|throw|success|try)\w*)\s*\(", body, re.I)
    )
