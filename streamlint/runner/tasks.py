"""What a run looks for: tasks that are asked of all its files at once, for the facts of a program are solved once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from streamlint import build_files
from streamlint.checks.base import registry
from streamlint.config.options import Options, Source
from streamlint.findings import Part, Problem
from streamlint.hazards import coverage
from streamlint.hazards import findings as hazards
from streamlint.runner import own_rows
from streamlint.support import guard
from streamlint.support.records import field, record
from streamlint.support.recursion import deeper
from streamlint.waits import findings as waits

if TYPE_CHECKING:
    from streamlint.cache.parts import Parts
    from streamlint.findings import Reported
    from streamlint.ir import ModuleIR
    from streamlint.runner.parsing import Parser

_WORDS = {"python": "Python", "cuda": "C++", "cython": "Cython"}
_EVERY = tuple(_WORDS)
Find = Callable[[Sequence[Source], Options, Callable[[Source], "ModuleIR | None"]], "Reported"]


class Kind(NamedTuple):
    """Rules that are asked of files of some languages at once, or a question of another kind, which has no code."""

    codes: frozenset[str]
    languages: tuple[str, ...]
    find: Find
    name: str = ""

    @property
    def title(self) -> str:
        """What the files are called in messages."""
        return " and ".join(_WORDS[one] for one in self.languages)


def codes_of(options: Options) -> frozenset[str]:
    """The rules that are asked."""
    return options.codes or frozenset(registry())


def kinds(options: Options) -> list[Kind]:
    """What is looked for under some options."""
    found = [Kind(waits.CODES, (language,), waits.find) for language in waits.LANGUAGES]
    found.append(Kind(hazards.registry(), _EVERY, hazards.find))
    found = [kind for kind in found if not kind.codes.isdisjoint(codes_of(options))]
    if options.coverage:
        found.append(Kind(frozenset(), _EVERY, coverage.find, "coverage"))
    if options.user_models:
        found.append(Kind(frozenset(), _EVERY, own_rows.find, "the user's rows"))
    return found


@record(slots=False)
class Task:
    """What is looked for in the files of a run: kept under a hash of all of them, or found anew."""

    parser: Parser
    options: Options
    kind: Kind
    stored: Parts | None = None
    sources: Sequence[Source] = field(init=False)
    part: Part | None = None  # what was found

    def __post_init__(self) -> None:
        self.sources = [one for one in self.parser.sources if one.language in self.kind.languages]
        if not self.sources:
            self.part = Part()
        elif self.stored is not None:
            self.part = self.stored.load(self.name, self.sources)

    @property
    def name(self) -> str:
        """Its name among the paths of files."""
        return f"<{', '.join(sorted(self.kind.codes)) or self.kind.name} in {self.kind.title}>"

    @property
    def size(self) -> int:
        """How much work it may be."""
        return sum(len(one.text) for one in self.sources)

    @property
    def seconds(self) -> float:
        """The processor time that it may take: that of a file, and as much for each megabyte."""
        return guard.seconds() * (1 + self.size / 1e6)

    def find(self) -> Part:
        """What is found. A fault of ours costs the rules that it is in, never the run, and so does a time that nothing real takes."""
        part = Part()
        if self.name in guard.lost:
            return self.lose(guard.lost[self.name])
        try:
            with deeper(), guard.task(self.name, self.seconds):
                result = self.kind.find(self.sources, self.options, self.parser.representation)
            part.findings, part.cut, part.coverage, part.own_rows = result.findings, result.cut, result.coverage, sorted(result.own_rows)
            part.problems += [self._problem([code], why) for code, why in result.faults.items()]
            said = [(path, word, answer) for path, answers in build_files.asked.items() for word, answer in answers.items()]
            part.built = sorted([path, word, build_files.plain_answer(answer)] for path, word, answer in said)
        except Exception as error:
            return self.lose(f"{type(error).__name__}: {error}")
        return part

    def done(self, part: Part) -> None:
        """Take what was found, and keep it."""
        self.part = part
        if self.stored is not None and self.sources:
            self.stored.keep(self.name, self.sources, part)

    def lose(self, why: str) -> Part:
        """The problems of a task that did not come to its end."""
        return Part(problems=[self._problem(sorted(self.kind.codes) or [self.kind.name], why)])

    def _problem(self, codes: Sequence[str], why: str) -> Problem:
        what = f"internal error: {', '.join(codes)} saw no {self.kind.title} file of this run: {why}"
        return Problem(self.sources[0].path, what, fault=True)
