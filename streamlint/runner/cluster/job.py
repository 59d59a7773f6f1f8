"""What a worker is sent of a run, once."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streamlint import __version__
from streamlint.cache.store import code_hash
from streamlint.config.options import Options, Source
from streamlint.findings import Part, Problem


@dataclass(frozen=True, slots=True)
class Job:
    """A run. ``parsed`` holds what became of each source, as bytes."""

    folder: str
    sources: tuple[Source, ...]
    options: Options
    parsed: Mapping[str, bytes | Problem]
    seconds: float  # of processor time for one file


def made_of() -> tuple[str, str]:
    """The version of this streamlint, and a hash of its code, its parsers and Python's version."""
    return __version__, code_hash(".".join(map(str, sys.version_info[:2])))


Answer = Part
"""What some rules gave, and what build files said to the worker; each hand of rules has one, under the name of its first rule."""
Answers = Iterator[tuple[str, "Answer | str"]]  # a text says why there is none
