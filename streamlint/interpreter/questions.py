"""Questions that a C++ file asks of all C++ at hand, and that are asked again where any of it has changed.

What one C++ file has from another one by an include or a link is noted as such (`consulted`). But some facts of a file are told by all
C++: that nobody calls a function, that no code records an event. Findings rest on the answer then, and not on every file that was looked
at for it. An answer has to follow from the C++ at hand, from what build files say, and from texts of Python that the file itself has asked
for by `Program.saying`; and ``repr`` has to tell it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from streamlint.interpreter.exports import Exports
    from streamlint.interpreter.index import File, Program

P = ParamSpec("P")
T = TypeVar("T")
Question = tuple[str, str, tuple[str, ...]]  # its name, the key of the file that it is asked of, further words

Led = tuple[str, str]  # the key of a file that an answer leads to, and what it is there

_KNOWN: dict[str, Callable[..., Any]] = {}


def question(work: Callable[Concatenate[File, P], T]) -> Callable[Concatenate[File, P], T]:
    """A function of a file, and of words, whose answers for C++ are kept with those who asked. Of Python it is a plain function."""
    name = f"{work.__module__.rpartition('.')[2]}.{work.__name__}"
    _KNOWN[name] = work

    @functools.wraps(work)
    def ask(file: File, *words: Any, **none: Any) -> Any:
        return file.program.answers.of(name, file, words) if file.is_cuda else work(file, *words, **none)

    if hasattr(work, "cache_clear"):  # what is remembered of Python is let go with the rest
        ask.cache_clear = work.cache_clear  # type: ignore[attr-defined]
    return ask  # type: ignore[return-value]


def about_exports(work: Callable[Concatenate[Exports, P], list[Led]]) -> Callable[Concatenate[Exports, P], list[Led]]:
    """A question of Python about what all C++ makes known to it; it is told by the C++ at hand and by its words."""
    _KNOWN[f"{work.__module__.rpartition('.')[2]}.{work.__name__}"] = work
    return work


class Answers:
    """What was answered in a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[Question, tuple[Any, str]] = {}

    def of(self, name: str, file: File, words: tuple[str, ...]) -> Any:
        """The answer, noted for the file that it is asked of."""
        asked = (name, file.key, words)
        if asked not in self._known:
            with self._program.consulted.apart():
                answer = _KNOWN[name](file, *words)
            self._known[asked] = answer, _hash(answer)
        answer, said = self._known[asked]
        self._program.consulted.question(asked, said, file.path)
        return answer

    def lead(self, name: str, words: tuple[str, ...], asking: File) -> None:
        """Note a question about all exports for the Python file that asks it, with the files that the answer leads to."""
        found, said = self._led(name, words)
        self._program.consulted.lead((name, "", words), said, asking.path, {key.partition("#")[0] for key, _ in found})

    def _led(self, name: str, words: tuple[str, ...]) -> tuple[list[Led], str]:
        asked = (name, "", words)
        if asked not in self._known:
            with self._program.consulted.apart():
                found = _KNOWN[name](self._program.all_exports(), *words)
            self._known[asked] = found, _hash(found)
        return self._known[asked]

    def said(self, name: str, key: str, words: tuple[str, ...]) -> str | None:
        """A hash of the answer, as it is noted; None where the file is not there any more."""
        if not key:
            importlib.import_module(f"{__package__}.exports")
            return self._led(name, words)[1] if name in _KNOWN else None
        file = self._program.file_of(key)
        if file is None or not file.is_cuda:
            return None
        if name not in _KNOWN:
            importlib.import_module(f"{__package__}.{name.partition('.')[0]}")
        self.of(name, file, words)
        return self._known[name, key, words][1]

    def clear(self) -> None:
        """Forget all: there is another file."""
        self._known.clear()


def _hash(answer: object) -> str:
    return hashlib.sha256(repr(answer).encode("utf-8", "surrogatepass")).hexdigest()[:16]
