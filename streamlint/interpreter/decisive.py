"""The words of what can matter: in the text of a body, of a branch."""

from __future__ import annotations

import re

from streamlint.interpreter.no_stream import without_text

# Words without which a body neither makes nor moves device memory, nor orders anything. Those that a longer word may hold are patterns.
WORDS = (
    "cuda",
    "Cuda",
    "CUDA",
    "tream",
    "vent(",
    "Event",
    "record(",
    "non_block",
    "blocking",
    "device",
    ".to(",
    ".cpu(",
    "item(",
    "numpy",
    "tolist",
    "copy_",
    "cupy",
    "cp.",
    "malloc",
    "Malloc",
    "ynchronize",
    "<<<",
    "thrust",
    "cub",
    "wait(",
    "query(",
    "Memcpy",
    "memcpy",
    "empty_cache",
    "launch_host_func",
    "callback",
    ".get(",
    ".set(",
    "free(",
    "Free(",
    "hip",
    "DataLoader",
    "collate",
    "loader",
    "to_host",
    "asnumpy",
    "done",
    "new ",
    "vector<",
    "std::move",
    "torch.",
    "Queue",
    "Thread",
    "Lock",
    "Executor",
    "get_context",
    "Condition",
)
_PARTS = re.compile(r"(?<![a-z])pin(?!g)|unpin|mempin")  # and not mapping, typing, skipping

# Words of what orders, copies or allocates: only branches with such are worth a path of their own.
DECISIVE = (
    "ynchronize",
    "tream",
    "vent",
    "record(",
    "wait",
    "query()",
    "non_block",
    "blocking",
    "pin_",
    "pinned",
    "copy_(",
    "copy_to",
    "copy_from",
    "copy_async",
    ".to(",
    ".cpu(",
    ".cuda(",
    "Async",
    "alloc",
    "Alloc",
    "free(",
    "Free(",
    "Launch",
    "launch",
    "<<<",
    "empty_cache",
    "thrust::",
    "device_vector",
    "device_uvector",
    "device_buffer",
    "device_scalar",
    "nccl",
    "item()",
    "item<",
    "tolist",
    ".numpy()",
    ".get(",
    ".set(",
    "device_array",
    "to_host",
    "callback",
    "std::move",  # of an owner, whose end may be a cudaFree
)

# No array, no queue: a key is given, as a string or by the name of a constant. What streams (``enable_streaming``) is no stream.
_NOT_MEANT = re.compile(r"\.get\(\s*(?:[fr]?[\"']|[A-Z][A-Z0-9_]+\s*[,)])|(?<=[sS])treaming")


def meant(text: str) -> str:
    """A text without what only looks like a word of ``DECISIVE``."""
    return _NOT_MEANT.sub("(", text)


# What a message says: a string with blanks in it, but for what is put in.
_MESSAGE = re.compile(r"""(?<!["'])(\b[fF])?(?:"(?!"")(?:[^"\\\n]|\\.)*"|'(?!'')(?:[^'\\\n]|\\.)*')""")
_PUT_IN = re.compile(r"\{([^{}\n]*)\}")


def without_messages(text: str) -> str:
    """Python without the texts that are for people to read."""
    return _MESSAGE.sub(_without_message, text)


def _without_message(match: re.Match[str]) -> str:
    held = match[0]
    if " " not in held:
        return held
    return " ".join(_PUT_IN.findall(held)) if match[1] else "''"


def cleared(text: str) -> str:
    """Python without what only looks like a word of ``WORDS``."""
    return meant(without_text(without_messages(text)))


def has_word(text: str) -> bool:
    """Whether a text holds a word by which a body can matter."""
    return any(word in text for word in WORDS) or _PARTS.search(text) is not None
