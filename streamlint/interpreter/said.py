"""Which literals the functions of a file say, as roots are chosen by them: their own text, and what stands outside of it and belongs to it.

Words that bring no stream, no event and no thread into play are not counted (`no_stream`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.interpreter.by_place import unmarked
from streamlint.interpreter.index import assigned_attributes
from streamlint.interpreter.letters import names_in_text
from streamlint.interpreter.no_stream import (
    CURRENT,
    HOST_EVENTS,
    gives_current,
    kept_streams,
    without_current,
    without_host_events,
    without_standard,
    without_text,
)
from streamlint.interpreter.notes import Kept, kept
from streamlint.interpreter.outside import Outside
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
    _without: dict[tuple[int, Literals], Kept[Literals]] = field(default_factory=dict)
    _kept: dict[int, Kept[tuple[frozenset[str], str]]] = field(default_factory=dict)
    _telling: dict[Literals, Kept[Literals]] = field(default_factory=dict)
    _in_file: dict[str, bool] = field(default_factory=dict)  # each literal that somebody has asked for
    _outside: dict[Literals, Kept[Outside]] = field(default_factory=dict)
    _led_to: dict[tuple[int, Literals], Literals] = field(default_factory=dict)
    _objects: dict[int, str] | None = None  # what the methods of classes find in their objects, by function

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

    def outside(self, function: p.Function, words: Literals) -> Literals:
        """The literals of the module's own statements that a function is led to by the names that it says."""
        outside = kept(self._outside, words, self._find_outside, words)
        if not outside.leads:
            return outside.always
        key = (id(function), words)
        if key not in self._led_to:
            texts = (*map(self.relevance.text, (*function.decorators, function)), self.of_object(function))
            self._led_to[key] = outside.of([names_in_text(text) for text in texts])
        return self._led_to[key]

    def _find_outside(self, words: Literals) -> Outside:
        return Outside(self.relevance.file, self.telling(words), self.relevance.text)

    def keeps(self, function: p.Function) -> bool:
        """Whether a function is a constructor of Python that keeps streams by names that speak of them."""
        return function.name == "__init__" and bool(self._keeping(function)[0])

    def by_keeping(self, constructor: p.Function, words: Literals, met: Iterable[p.Function]) -> Literals:
        """The literals in such a constructor's text; of the streams that it keeps, where one of the functions that are met names them."""
        names, text = self._keeping(constructor)
        for other in met:
            said = self.relevance.holder(other).said
            around = said._keeping(other)[1] if other.name == "__init__" else said._text(other)
            if any(f".{name}" in around for name in names):
                return self.by(constructor, words)
        return kept(self._without, (id(constructor), words), self._found_in, text, words)

    def _found_in(self, text: str, words: Literals) -> Literals:
        return frozenset(word for word in self._anywhere(words) if word in text)

    def of_object(self, function: p.Function) -> str:
        """What a method finds in its object: its class's bases and fields, and what other methods assign."""
        if self._objects is None:
            self._objects, text = {}, self.relevance.text
            for definition in dict.fromkeys(self.relevance.file.module.classes.values()):
                methods = [method for overloads in definition.methods.values() for method in overloads]
                given = [value for method in methods for values in assigned_attributes(method).values() for value in values]
                given += [held.value for held in definition.fields if held.value is not None]
                said = "\n".join([*map(text, (*definition.bases, *given)), *map(text, definition.body)])
                self._objects.update((id(method), said) for method in methods)
        return self._objects.get(id(function), "")

    def stands_for(self, made: p.Function, function: p.Function) -> None:
        """``made`` is a method without some of its statements: it finds the same in its object."""
        said = self.of_object(function)
        assert self._objects is not None
        self._objects[id(made)] = said

    def macros_in(self, function: p.Function) -> str:
        """C++: the bodies of the macros that a function's text names."""
        if not self.relevance.file.is_cuda:
            return ""
        text = self.relevance.text(function)
        return "\n".join(body for file in self.relevance.reach() for name, body in file.module.macros.items() if name in text)

    def _keeping(self, constructor: p.Function) -> tuple[frozenset[str], str]:
        """The attributes by whose names a constructor keeps streams, and its text without that."""
        return kept(self._kept, id(constructor), self._find_keeping, constructor)

    def _find_keeping(self, constructor: p.Function) -> tuple[frozenset[str], str]:
        whole = self._text(constructor)
        is_cuda = self.relevance.file.is_cuda
        return (frozenset(), whole) if is_cuda else kept_streams(constructor, whole, self.relevance.text)

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
        imports = self.relevance.file.module.imports
        text = unmarked(text, self.relevance.python.is_module)
        return without_host_events(without_text(text), (name for name, dotted in imports.items() if dotted in HOST_EVENTS))

    def within(self, node: p.Expression, words: Literals) -> Literals:
        """Python: the literals that stand in an expression."""
        return kept(self._without, (id(node), words), self._find_within, node, words)

    def _find_within(self, node: p.Expression, words: Literals) -> Literals:
        return self._found_in(self._of_python(self.relevance.text(node)), words)

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
