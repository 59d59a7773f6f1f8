"""Methods that a class of Python has from its bases, and that do something else there: they call what it has in the base's place."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from streamlint import program as p
from streamlint.interpreter.at_hand import class_at_hand
from streamlint.interpreter.index import File, is_declaration

_MOST_BASES = 8
_STREAM = re.compile(r"Stream|s(?<![A-Za-z]s)tream")


def inherited_methods(file: File) -> Iterator[tuple[File, p.Function, p.Class]]:
    """Those of the classes of a file whose base makes or uses streams: where the method stands, the method, and the class that has it."""
    for definition in dict.fromkeys(file.module.classes.values()):
        own, met = set(definition.methods) - {"__init__"}, set(definition.methods)
        bases = [(base, file) for base in definition.bases] if own else []
        for base, place in bases:
            held = class_at_hand(base, place)
            if held is None or len(bases) > _MOST_BASES or held[1].is_cuda or not _speaks_of_streams(*held):
                continue
            for name, overloads in held[0].methods.items():
                method = overloads[-1]
                if name not in met and method.body and not is_declaration(method) and own & _calls_of_self(method):
                    yield held[1], method, definition
            met |= set(held[0].methods)
            bases += [(further, held[1]) for further in held[0].bases]


def _speaks_of_streams(definition: p.Class, file: File) -> bool:
    """Whether the code of a class names a stream; messages may speak of what is downstream."""
    return "tream" in file.module.text and _STREAM.search(file.relevance.text(definition)) is not None


@functools.lru_cache(maxsize=8192)
def _calls_of_self(method: p.Function) -> frozenset[str]:
    """The methods that a method calls of its own object."""
    this = method.params[0].name if method.params else ""
    callees = (node.function for node in p.walk(method) if isinstance(node, p.Call))
    return frozenset(c.name for c in callees if isinstance(c, p.Attr) and isinstance(c.value, p.Name) and c.value.id == this)
