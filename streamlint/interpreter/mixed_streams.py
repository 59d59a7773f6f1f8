"""Objects with per-thread default streams and with the legacy one in one program, as far as the build says what goes together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from streamlint import program as p
from streamlint.build import per_thread_default_stream, sources_built_with
from streamlint.findings import Span
from streamlint.interpreter.index import File, dotted_name, walk_module
from streamlint.interpreter.per_thread import MACRO, working_macro
from streamlint.interpreter.questions import question
from streamlint.record import record

_BUILDERS = tuple(f"torch.utils.cpp_extension.{name}" for name in ("CUDAExtension", "load", "load_inline"))
_OPTIONS = frozenset({"extra_cuda_cflags", "extra_compile_args", "define_macros"})
_FLAG = re.compile(rf"-?-default-stream[= ]per-thread\Z|-D ?{MACRO}(?:=.*)?\Z|{MACRO}(?:=.*)?\Z")
_MOST = 64  # names that are followed


@record(frozen=True, slots=True)
class Mix:
    """What makes one part per-thread, and what shows that the other part is not. ``other`` is torch, or a source's name."""

    at: Span
    other: str
    because: Span


def mixes(file: File) -> Iterator[Mix]:
    """The mixes that a file makes: Python that builds an extension of PyTorch, C++ beside CUDA sources."""
    yield from _siblings(file) if file.is_cuda else _extensions(file)


def _extensions(file: File) -> Iterator[Mix]:
    nodes = list(walk_module(file.module))
    given: dict[str, list[p.Expression]] = {}
    for node in nodes:
        if isinstance(node, p.Assign) and node.value is not None:
            for target in node.targets:
                if isinstance(target, p.Name):
                    given.setdefault(target.id, []).append(node.value)
    for node in nodes:
        if isinstance(node, p.Call) and dotted_name(file, node.function) in _BUILDERS:
            for arg in node.args:
                for at in _flags(arg.value, given, []) if arg.keyword in _OPTIONS else ():
                    yield Mix(Span(file.path, *at), "torch", Span(file.path, *p.called_at(node)))


def _flags(value: p.Expression, given: dict[str, list[p.Expression]], seen: list[str]) -> Iterator[p.Position]:
    """The options for per-thread default streams in what an argument is made of."""
    left = [value]  # a loop: what is joined may be longer than calls may nest
    while left:
        value = left.pop()
        if isinstance(value, p.Name) and value.id not in seen and len(seen) < _MOST:
            seen.append(value.id)
            left += reversed(given.get(value.id, ()))
            continue
        if isinstance(value, p.Collection):
            words = [item.value if isinstance(item, p.Const) else None for item in value.items]
            for item, word, after in zip(value.items, words, [*words[1:], None], strict=True):
                if word in ("--default-stream", "-default-stream") and after == "per-thread":
                    yield item.at
        if isinstance(value, p.Const) and isinstance(value.value, str) and _FLAG.match(value.value):
            yield value.at
        left += reversed([child for child in p.children(value) if isinstance(child, p.Expression)])


@question
def _siblings(file: File) -> list[Mix]:
    return list(_sibling(file))


def _sibling(file: File) -> Iterator[Mix]:
    """A source with the macro, and another of the same target that launches on the legacy default stream."""
    at = working_macro(file) if MACRO in file.module.text else None
    together = sources_built_with(file.path) if at is not None else frozenset()
    for other in file.program.cpp(file):
        if at is None or other is file or str(Path(other.path)) not in together or MACRO in other.module.text:
            continue
        if per_thread_default_stream(other.path):
            continue
        launch = next((n for n in walk_module(other.module) if isinstance(n, p.Launch) and len(n.config) < 4), None)
        if launch is not None:
            name = other.path.rpartition("/")[2]
            yield Mix(at, name, Span(other.path, *p.called_at(launch)))
            return
