"""Text that speaks of streams and brings none into play: the words in it are no reason to run a function.

A function that asks for the current stream, keeps it under a name, and hands its address on or waits for it, works on that stream alone.
C++'s standard library calls what it reads and writes streams, and Python streams text. What a constructor keeps under a name that speaks of
streams comes into play where that name is said. And a ``with`` enters a stream only where what it is given may be one. Threads of the host
have events as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from streamlint.interpreter.letters import separators, with_letter
from streamlint.operations import ENTERED

CURRENT = ("current_stream", "get_current_stream")
_BLANK = "\x1d"
_CURRENT = re.compile(r"(?<=\bdef )(?:get_)?current_stream\b|\b(?:get_)?current_stream(?=\((?:[\w.]|\[\w*\])*\))")
_ASKED = rf"(?:\w+\.)*(?:get_)?current_{_BLANK}+\("
_BOUND = re.compile(rf"(?<![\w.])(\w*[sS]tream\w*)\s*=\s*{_ASKED}")
_NONE = r"\s*=\s*None(?=\s*[,)])"
_IDLE = rf"\s*=\s*{_ASKED}|\s+is\s+(?:not\s+)?None\b|\.(?:ptr\b|cuda_stream\b|synchronize\(\))"

_GIVES = re.compile(rf"\s*(?:return(?:\s+None|\s+{_ASKED}[^()\n]*\))?|pass|\.\.\.|raise\b[^\n]*)?\s*")

# As types: what stands behind a dot, or as a value, may be a member or a variable of any name.
_IO = (
    r"(?:basic_)?w?(?:(?:i|o|io|[io]?f|[io]?string|[io]?str|[io]?span|osync)stream|s?streambuf|stream(?:size|pos|off)|"
    r"[io]stream(?:buf)?_iterator)"
)
_STANDARD = re.compile(
    rf"\bstd::\s*{_IO}\b|(?<![\w.>]){_IO}(?=\s*[&<(]|::|\s*\*\s*[\w,)>]|\s+\w)"
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)'|[ \t]*#\s*include\b.*"
)
# Tokens that are streamed, what can be, logs, what lies down the road, and the question whether a graph is being captured.
_TEXT = re.compile(
    r"[sS]tream(?=er|ing|able|Handler|Reader|Writer|_capturing|\s*[:=]\s*(?:bool|True|False)\b)|(?<=[dD]own)stream|(?<=[uU]p)stream|(?<=[mM]ain)stream"
)
_HOST_EVENT = re.compile(r"\b(threading|asyncio|multiprocessing)\.Event\b")
HOST_EVENTS = frozenset({"threading.Event", "asyncio.Event", "multiprocessing.Event"})
_PYTHON = re.compile(r"\bPy(?:Eval|GILState|Thread)\w*")
_WITH = re.compile(r"(?<![^\n])[^\S\n]*(?:async[^\S\n]+)?(with)\b")
_JOINED = re.compile(r"\b(?:if|or|and)\b")
_CALLED = re.compile(r"[\w.]+\(.*\)(?:\s+as\b.*)?", re.DOTALL)


def without_standard(text: str) -> str:
    """A function of C++ without the streams of the standard library, those that messages speak of, and the state of Python's threads."""
    if "Thread" in text:
        text = _PYTHON.sub("", text)
    return _STANDARD.sub(_blanked, text) if "tream" in text else text


def without_text(text: str) -> str:
    """A text of Python without the streams of text."""
    return _TEXT.sub(_blanked, text) if "tream" in text else text


def without_host_events(text: str, names: Iterable[str]) -> str:
    """A text of Python without the events of its own threads; ``names`` are those that stand for their class."""
    if "Event" not in text:
        return text
    for name in names:
        text = re.sub(rf"(?<![\w.]){re.escape(name)}\b", _BLANK * len(name), text)
    return _HOST_EVENT.sub(lambda match: f"{match[1]}.{_BLANK * 5}", text)


def without_current(text: str, calls_cpp: bool = False) -> str:
    """A function of Python without what only asks for the current stream, or names it and nothing else.

    What may be ``None`` is the current stream then, or a caller's, which C++ that is called here would be run on.
    """
    text = _CURRENT.sub(_blanked, text)
    for name in {match[1] for match in _BOUND.finditer(text)}:
        idle = re.compile(rf"(?<![\w.]){re.escape(name)}(?:{_IDLE}{'' if calls_cpp else '|' + _NONE})")
        blanked = idle.sub(_blanked, text)
        if re.search(rf"\b{re.escape(name)}\b", blanked) is None:
            text = blanked
    return text


def gives_current(text: str) -> bool:
    """Whether a function of Python that is called as if it gave the current stream does that, or nothing at all."""
    return _GIVES.fullmatch(_CURRENT.sub(_blanked, text.partition(":\n")[2])) is not None


def with_entered(text: str) -> str:
    """Python with ``ENTERED`` instead of a letter of each ``with`` that is given something else than the result of a call."""
    return with_letter(text, (match.start(1) for match in _WITH.finditer(text) if _enters(text, match.end())), ENTERED)


def _enters(text: str, begin: int) -> bool:
    """Whether the items that begin here hold one that is no call, or more than can be told."""
    items, start = list[str](), begin
    for part in separators(text, begin):
        items.append(text[start : part.start()])
        start = part.end()
        if part[0] == ":":
            return any(_JOINED.search(item) is not None or _CALLED.fullmatch(item.strip()) is None for item in items)
    return True


def _blanked(match: re.Match[str]) -> str:
    return re.sub("(?i)stream", _BLANK * 6, match[0])
