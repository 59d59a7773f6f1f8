"""Which literals the functions of a file say: arms are held worth a second path by them.

Words that bring no stream, no event and no thread into play are not counted (`no_stream`).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.interpreter.by_place import unmarked
from streamlint.interpreter.no_stream import (
    CURRENT,
    HOST_EVENTS,
    gives_current,
    without_current,
    without_host_events,
    without_standard,
    without_text,
)
from streamlint.interpreter.notes import Kept, kept
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.interpreter.relevance import Relevance

Literals = frozenset[str]
# What stands for calls of CUDA's libraries in C++. Python names back ends so; it calls them through C++ at hand, which says so itself.
_OF_CPP = frozenset({"nccl", "cutlass", "cudnn", "cublas", "cufft", "curand", "cusparse", "cusolver", "thrust::", "cub::"})
# A launch in Python: what is subscripted there is a kernel of numba, whose decorator makes it one (`bodies.is_kernel`).
_LAUNCH = "]("
_NUMBA = ("import numba", "from numba", ", numba")


@record(eq=False, slots=True)
class Said:
    """The literals of one file's functions, each found once."""

    relevance: Relevance
    _texts: dict[int, Kept[str]] = field(default_factory=dict)
    _own: dict[tuple[int, Literals], Kept[Literals]] = field(default_factory=dict)
    _telling: dict[Literals, Kept[Literals]] = field(default_factory=dict)
    _in_file: dict[str, bool] = field(default_factory=dict)  # each literal that somebody has asked for

    def telling(self, words: Literals) -> Literals:
        """Those of the literals that say something in the file's language."""
        file = self.relevance.file
        if file.is_cuda or file.is_cython:
            return words
        telling = _telling_python(words)
        return telling if _LAUNCH not in telling or file.program.saying(file, *_NUMBA) else telling - {_LAUNCH}

    def by(self, function: p.Function, words: Literals) -> Literals:
        """The literals that stand in a function's own text."""
        return kept(self._own, (id(function), words), self._find_own, function, words)

    def _find_own(self, function: p.Function, words: Literals) -> Literals:
        text, elsewhere = self._text(function), without_standard(self.macros_in(function)) + self._threads_of(function)
        found = [word for word in self._anywhere(words) if word in text]
        return frozenset(found + [word for word in words if word in elsewhere] if elsewhere else found)

    def macros_in(self, function: p.Function) -> str:
        """C++: the bodies of the macros that a function's text names."""
        if not self.relevance.file.is_cuda:
            return ""
        text = self.relevance.text(function)
        return "\n".join(body for file in self.relevance.reach() for name, body in file.module.macros.items() if name in text)

    def _text(self, function: p.Function) -> str:
        """A function's text, without words that bring nothing into play."""
        return kept(self._texts, id(function), self._cleared, function)

    def _cleared(self, function: p.Function) -> str:
        relevance = self.relevance
        text = relevance.text(function)
        if relevance.file.is_cuda:
            return without_standard(text)
        text = self._of_python(text)
        if "current_stream(" not in text:
            return text
        if not all(gives_current(relevance.text_of(own)) for name in CURRENT for own in relevance.named(name)):
            return text
        return without_current(text, any(relevance.holder(callee).file.is_cuda for callee in relevance.callees(function)))

    def _of_python(self, text: str) -> str:
        imports = self.relevance.file.imports
        text = unmarked(text, self.relevance.python.is_module)
        return without_host_events(without_text(text), (name for name, dotted in imports.items() if dotted in HOST_EVENTS))

    def _anywhere(self, words: Literals) -> Literals:
        """Those of the literals that say something and stand anywhere in the file's code."""
        return kept(self._telling, words, self._find_anywhere, words)

    def _find_anywhere(self, words: Literals) -> Literals:
        return self.in_file(self.telling(words))

    def in_file(self, words: Literals) -> Literals:
        """Those of the literals that stand anywhere in the file's code."""
        if not words <= self._in_file.keys():
            text = "\n".join(self.relevance.file.words)
            self._in_file.update((word, word in text) for word in words - self._in_file.keys())
        return frozenset(word for word in words if self._in_file[word])

    def _threads_of(self, function: p.Function) -> str:
        """C++: the types of members that are threads, which a constructor starts without naming them."""
        file = self.relevance.file
        definition = file.class_named(function.class_name) if file.is_cuda and function.name == "__init__" else None
        kinds = [] if definition is None else [field.type for field in definition.fields if field.type is not None]
        names = [kind.name for outer in kinds for kind in (outer, *outer.args)]
        rows = [(name, file.models.call(name)) for name in names if "thread" in name]
        return " ".join(name for name, row in rows if row is not None and row.effect == "thread")


@functools.lru_cache(maxsize=64)
def _telling_python(words: Literals) -> Literals:
    return words - _OF_CPP
