"""What a template declares: the code under test, the experiment that settles it, and what it predicts.

One text has three uses: the docs show a snippet, the tests lint it (a finding of rule R on each line that ends in ``misuse: R``, none
elsewhere), and the child process runs it on the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlint.verify.criteria import Experiment

if TYPE_CHECKING:
    from streamlint.verify.lab import Lab

SNIPPETS = Path(__file__).parent / "templates" / "snippets"
VARIANTS = ("misuse", "remedy")
_REQUIREMENTS = {"torch": ("torch",), "numba": ("numba",), "cuda-python": ("cuda.bindings",), "cuda": ("nvcc",), "cupy": ()}
OTHER_CLAIM = "other claim"  # a kind that no finding is of: what a rule claims beside its main point
ANY_KIND = "*"  # the case stands for kinds that none names
_MARKER = re.compile(r"(?:#|//) misuse: (SL\d{3})\s*$")


class UnsupportedError(Exception):
    """The case cannot run here; the text says what is missing."""


def _no_reset(_round: int) -> object:
    return None


@dataclass(slots=True)
class Trial:
    """One program, ready to run: what the experiment needs to know beside the code itself."""

    call: Callable[[], object]
    gate: int = 0  # raw handle of the stream to hold shut; 0 is the null stream
    watch: int = 0  # STREAMS_SERIALISE: raw handle of stream B
    reset: Callable[[int], object] = _no_reset  # poisons the data before round N and returns the right result
    expected: object = None  # ERROR: the predicted status


@dataclass(frozen=True)
class Case:
    """A pair of snippets, ``<stem>_misuse`` and ``<stem>_remedy``, that differ in one thing."""

    rule: str
    name: str
    api: str  # torch, cupy, numba, cuda-python, cuda
    experiment: Experiment
    prediction: str
    stem: str
    trial: Callable[[Lab, Any, Mapping[str, Any]], Trial]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()  # beside the API itself: nvcc, ninja, python-headers
    builds: bool = False  # importing the snippet compiles it
    devices: int = 1  # GPUs that the child is shown
    takes: tuple[str, ...] = ()  # the facts of a finding that the trial can run with: its parameters of these names are their defaults
    kinds: tuple[str, ...] = ()  # the kinds of finding that it is about; empty: any that no other case of the rule names
    facts: tuple[tuple[str, Any], ...] = ()  # a finding's own, which took the place of parameters

    def given(self, facts: Mapping[str, Any]) -> Case:
        """The case with a finding's facts in the place of its parameters."""
        if not facts:
            return self
        return replace(self, parameters={**self.parameters, **facts}, facts=tuple(sorted(facts.items())))

    @property
    def identity(self) -> tuple[object, ...]:
        """What distinguishes one run from another: the key, and the facts that it runs with."""
        return (*self.key, *self.facts)

    @property
    def key(self) -> tuple[str, str, str]:
        """What distinguishes one case from another, in evidence too."""
        return (self.rule, self.name, self.api)

    @property
    def suffix(self) -> str:
        return ".cu" if self.api == "cuda" else ".py"

    @property
    def requirements(self) -> tuple[str, ...]:
        """Packages and programs without which the case is UNSUPPORTED."""
        return _REQUIREMENTS[self.api] + self.needs

    def path(self, variant: str) -> Path:
        """The file of ``misuse`` or ``remedy``."""
        return SNIPPETS / f"{self.stem}_{variant}{self.suffix}"

    def source(self, variant: str) -> str:
        return self.path(variant).read_text(encoding="utf-8")

    def marked(self, variant: str) -> list[tuple[str, int]]:
        """The findings that the linter owes this snippet: rule and row, rows from 1."""
        rows = enumerate(self.source(variant).splitlines(), start=1)
        return [(found[1], row) for row, line in rows if (found := _MARKER.search(line))]


@dataclass(frozen=True)
class Template:
    """The cases of one rule."""

    rule: str
    name: str
    cases: tuple[Case, ...]
