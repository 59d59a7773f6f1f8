"""Preprocessor conditions, decided as a host compiler for NVIDIA GPUs would: True, False, or None where nobody can know."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

ARCHITECTURE = "__CUDA_ARCH__"
"""Not defined for the host; its value is given where code of the device is read."""
_OTHER_VENDOR = re.compile(
    r"_*(?:HIP|HIPCC|USE_HIP|USE_ROCM|ROCM|MUSA|USE_MUSA|SYCL|USE_SYCL|USE_MACA|MACA|GGML_USE_HIP|GGML_USE_HIPBLAS|GGML_USE_MUSA)_*"
    r"|__HIP\w+|\w*_(?:USE|WITH|ENABLE)_(?:HIP|ROCM|MUSA|SYCL)|(?:USE|WITH|ENABLE)_(?:ROCM|HIP)\w*|(?:HIP|ROCM|MUSA)_VERSION\w*"
    r"|PADDLE_WITH_HIP|SYCL_LANGUAGE_VERSION|PLATFORM_HIP|__gfx\w+__"
)
_NOT_DEFINED = re.compile(
    r"__CUDA_ARCH__|__CUDA_ARCH_\w+|__CUDACC_RTC__|_?DEBUG\d*|_*DEBUG_\w+|\w+_DEBUG\w*|_WIN32|WIN32|_WIN64|_MSC_VER|__APPLE__|_LIBCPP\w+|DOXYGEN\w*|__DOXYGEN\w*"
    r"|__CYGWIN__|__MINGW\d+__|__QNX__|\w*DOXYGEN\w*|\w*_NO_\w+|NO_\w+|(?:\w+_)?DISABLED?_\w+|CPU_ONLY|__OBJC__|__clang__"
)
_DEFINED = re.compile(
    r"NDEBUG|__CUDACC__|__NVCC__|__cplusplus|USE_CUDA|WITH_CUDA|__linux__|__GNUC__|PADDLE_WITH_CUDA|GGML_USE_CUDA|__x86_64__|LIGHTGBM_USE_CUDA"
    r"|(?:\w+_)?(?:HAVE|USE|WITH|ENABLE|HAS)_(?:CUDA|GPU)"
)
_NUMBERS = {
    "CUDA_VERSION": 12090,
    "CUDART_VERSION": 12090,
    "__CUDACC_VER_MAJOR__": 12,
    "__CUDACC_VER_MINOR__": 9,
    "__cplusplus": 201703,
    "TORCH_VERSION_MAJOR": 2,
    "TORCH_VERSION_MINOR": 6,
    "__CUDA_ARCH__": 0,
    "true": 1,
    "false": 0,
}
_TOKEN = re.compile(r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)[uUlL]*|([A-Za-z_]\w*)|(\|\||&&|[=!<>]=|<<|>>|[-+*/%<>!()~,&|^?:]))")
_LEVELS: tuple[Mapping[str, Callable[[int, int], int]], ...] = (
    {"==": lambda a, b: a == b, "!=": lambda a, b: a != b},
    {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": lambda a, b: a // b if b else 0, "%": lambda a, b: a % b if b else 0},
)


class Unreadable(Exception):
    """The condition uses something that this reader does not know."""


def defined(name: str, macros: Mapping[str, str]) -> bool | None:
    """Whether ``name`` is defined when CUDA host code is compiled; ``macros`` are those of the file so far."""
    if name == ARCHITECTURE and name in macros:
        return True
    if _OTHER_VENDOR.fullmatch(name) or _NOT_DEFINED.fullmatch(name):
        return False
    if name in macros or name in _NUMBERS or _DEFINED.fullmatch(name):
        return True
    return None


def holds(condition: str, macros: Mapping[str, str]) -> bool | None:
    """The value of an ``#if`` condition."""
    try:
        value = _Reader(condition, macros).read()
    except (Unreadable, RecursionError, ValueError):  # the last for numbers of thousands of digits
        return None
    return None if value is None else bool(value)


class _Reader:
    """Precedence climbing over the tokens of one condition; None is an unknown number."""

    def __init__(self, condition: str, macros: Mapping[str, str]) -> None:
        self.tokens = _tokens(condition)
        self.macros = macros
        self.at = 0

    def read(self) -> int | None:
        value = self.either()
        if self.at < len(self.tokens):
            raise Unreadable
        return value

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def either(self) -> int | None:
        value = self.both()
        while self.peek() == "||":
            self.take()
            right = self.both()
            value = 1 if value or right else (None if value is None or right is None else 0)
        return value

    def both(self) -> int | None:
        value = self.level(0)
        while self.peek() == "&&":
            self.take()
            right = self.level(0)
            value = 0 if value == 0 or right == 0 else (None if value is None or right is None else 1)
        return value

    def level(self, depth: int) -> int | None:
        if depth == len(_LEVELS):
            return self.operand()
        value = self.level(depth + 1)
        while self.peek() in _LEVELS[depth]:
            compute = _LEVELS[depth][self.take()]
            right = self.level(depth + 1)
            value = None if value is None or right is None else int(compute(value, right))
        return value

    def operand(self) -> int | None:
        token = self.take()
        if token == "!":
            value = self.operand()
            return None if value is None else int(not value)
        if token == "-":
            value = self.operand()
            return None if value is None else -value
        if token == "(":
            value = self.either()
            self.expect(")")
            return value
        if token[:1].isdigit():
            return int(token, 16) if token[:2] in ("0x", "0X") else int(token)
        return self.name(token)

    def name(self, token: str) -> int | None:
        if token == "defined":
            value = defined(self.wrapped(), self.macros)
            return None if value is None else int(value)
        if not token or not (token[0].isalpha() or token[0] == "_"):
            raise Unreadable
        if self.peek() == "(":
            self.skip_arguments()
            return None
        return self.number(token)

    def number(self, name: str) -> int | None:
        if name in _NUMBERS and not (name == ARCHITECTURE and name in self.macros):
            return _NUMBERS[name]
        body = self.macros.get(name, "").strip(" ()")
        if body.isdigit():
            return int(body)
        if name not in self.macros and _DEFINED.fullmatch(name):
            return 1
        return 0 if defined(name, self.macros) is False else None

    def wrapped(self) -> str:
        if self.peek() != "(":
            return self.take()
        self.take()
        name = self.take()
        self.expect(")")
        return name

    def skip_arguments(self) -> None:
        depth = 0
        while token := self.take():
            depth += (token == "(") - (token == ")")
            if not depth:
                return
        raise Unreadable

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise Unreadable


def _tokens(condition: str) -> list[str]:
    found: list[str] = []
    at = 0
    condition = condition.replace("\\\r\n", " ").replace("\\\n", " ").strip()
    while at < len(condition):
        match = _TOKEN.match(condition, at)
        if match is None:
            raise Unreadable
        found.append(match.group(match.lastindex or 0))
        at = match.end()
    return found
