"""What rules find in a program as a whole: tasks beside the files, for the program facts are solved once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from streamlint import guard
from streamlint.analysis import Part
from streamlint.cache.intermediate import IntermediateCache
from streamlint.cache.store import digest
from streamlint.cache.units import Units, native_hash
from streamlint.findings import Problem
from streamlint.hazards import findings as hazards
from streamlint.interpreter.recursion import deeper
from streamlint.options import Options, Source
from streamlint.waits import findings as waits

if TYPE_CHECKING:
    from streamlint.findings import Told
    from streamlint.ir import ModuleIR
    from streamlint.program import Module

_FRAMES = 10_000  # of Python: chains of calls are followed by recursion
_WORDS = {"python": "Python", "cuda": "C++", "cython": "Cython"}
Lowered = Callable[[str], "Module | None"]  # the syntax tree of a file by its path
Find = Callable[[Sequence[Source], Options, Callable[[Source], "ModuleIR | None"]], "Told"]


class Kind(NamedTuple):
    """Rules that are asked of files of some languages at once."""

    codes: frozenset[str]
    languages: tuple[str, ...]
    find: Find

    @property
    def title(self) -> str:
        """What the files are called in messages."""
        return " and ".join(_WORDS[one] for one in self.languages)


def kinds() -> list[Kind]:
    """All tasks of a run."""
    alone = [Kind(waits.CODES, (language,), waits.find) for language in waits.LANGUAGES]
    return [*alone, Kind(hazards.codes(), ("python", "cuda", "cython"), hazards.find)]


@dataclass
class WholeTask:
    """What rules find in the files of a run: kept under a hash of all of them, or found anew.

    ``lowered`` gives the syntax tree of a file, where its intermediate representation is not kept.
    """

    sources: Sequence[Source]
    options: Options
    lowered: Lowered
    kind: Kind
    units: Units | None = None
    part: Part | None = None  # what was found
    key: str = ""

    def __post_init__(self) -> None:
        asked = not self.options.codes or not self.kind.codes.isdisjoint(self.options.codes)
        self.sources = [one for one in self.sources if one.language in self.kind.languages] if asked and self.kind.codes else []
        if not self.sources:
            self.part = Part()
        elif self.units is not None:
            hashes = {one.path: digest(one.text) for one in self.sources}
            texts = "\0".join(part for pair in hashes.items() for part in pair)
            built = native_hash((one.path for one in self.sources if one.language != "python"), hashes)
            self.key = digest(f"{' '.join(sorted(self.kind.codes))}\0{texts}\0{built}")
            self.part = self.units.load_whole(self.key)

    @property
    def name(self) -> str:
        """Its name among the paths of files."""
        return f"<{', '.join(sorted(self.kind.codes))} in {self.kind.title}>"

    @property
    def size(self) -> int:
        """How much work it may be: more than any file alone."""
        return sum(len(one.text) for one in self.sources)

    @property
    def seconds(self) -> float:
        """The processor time that it may take: that of a file, and as much for each megabyte."""
        return guard.seconds() * (1 + self.size / 1e6)

    def find(self) -> Part:
        """What is found. A fault of ours costs the rules that it is in, never the run, and so does a time that nothing real takes."""
        part = Part()
        if self.name in guard.lost:
            return self.lose(part, guard.lost[self.name])
        try:
            with deeper(_FRAMES), guard.task(self.name, self.seconds):
                told = self.kind.find(self.sources, self.options, self._intermediate)
            part.findings, part.coverage.over_budget = told.findings, told.cut
            part.problems += [self._problem([code], why) for code, why in told.faults.items()]
        except Exception as error:
            self.lose(part, f"{type(error).__name__}: {error}")
        return part

    def done(self, part: Part) -> None:
        """Take what was found, and keep it."""
        self.part = part
        if self.units is not None and self.key and not part.problems:
            self.units.keep_whole(self.key, part)

    def lose(self, part: Part, why: str) -> Part:
        """What is told where the task did not come to its end."""
        part.findings.clear()
        part.problems.append(self._problem(sorted(self.kind.codes), why))
        return part

    def _problem(self, codes: Sequence[str], why: str) -> Problem:
        what = f"internal error: {', '.join(codes)} saw no {self.kind.title} file of this run: {why}"
        return Problem(self.sources[0].path, what)

    @cached_property
    def _kept(self) -> IntermediateCache | None:
        return IntermediateCache(self.units.store.base) if self.units is not None else None

    def _intermediate(self, source: Source) -> ModuleIR | None:
        from streamlint.ir.modules import lower

        data = source.text.encode("utf-8", "surrogatepass")
        keeps = self._kept is not None and source.language == "python"  # what headers C++ includes is known to its tree alone
        found = self._kept.load(source.path, source.language, data) if self._kept is not None and keeps else None
        if found is None and (tree := self.lowered(source.path)) is not None:
            found = lower(tree)
            if self._kept is not None and keeps:
                self._kept.keep(found, source.language, data)
        return found
