"""What a worker is sent of a run, once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamlint.cache.units import Unit
from streamlint.options import Options, Source

if TYPE_CHECKING:
    from streamlint.analysis import Part


@dataclass(frozen=True, slots=True)
class Job:
    """A run. ``units`` say of each source what lowering it gave; ``paths`` names the list of those that parse, and
    ``interface`` says what Python may see of the C++."""

    folder: str
    sources: tuple[Source, ...]
    options: Options
    units: dict[str, Unit]
    paths: str
    interface: dict[str, Any]
    seconds: float  # of processor time for one file


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one file, and what it rests on."""

    parts: list[Part]
    rests: dict[str, Any]
    native: str


def made_of() -> tuple[str, str]:
    """The version of this streamlint, and a hash of its code, its parsers and Python's version."""
    from streamlint import __version__
    from streamlint.cache.store import code_hash

    return __version__, code_hash(".".join(map(str, sys.version_info[:2])))


Answers = Iterator[tuple[str, "Answer | str"]]  # a text says why there is none
