"""A file of a run looked at once more with another text, among the files that it was read with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from streamlint.config.options import Options, Source
from streamlint.facts.files.neighbours import Neighbours
from streamlint.findings import Finding
from streamlint.hazards import findings as hazards
from streamlint.runner.parsing import Parser
from streamlint.support.records import replace
from streamlint.support.recursion import deeper
from streamlint.triage.precedence import winners

if TYPE_CHECKING:
    from streamlint.ir import ModuleIR

_MOST_NEAR = 24
"""Files that a trial asks beside the changed one, if they show what the run has found."""


class Relint:
    """The sources of a run, of which one is changed."""

    def __init__(self, sources: Sequence[Source], options: Options) -> None:
        self._options = options
        self._parser = Parser(sources)
        self._found: Mapping[str, Sequence[Finding]] = {}
        self._far: dict[str, frozenset[str]] = {}

    def keep(self, parser: Parser | None, found: Mapping[str, Sequence[Finding]] = MappingProxyType({})) -> None:
        """Re-lints edited files by what the run has kept of the others."""
        self._found = found
        if parser is not None:
            self._parser = parser

    def found(self, path: str) -> list[Finding]:
        """What the run itself found from one file, by its own rules."""
        return list(winners(self._found.get(path, ())))

    def findings(self, path: str, text: str, codes: frozenset[str], everywhere: bool = True) -> list[Finding] | None:
        """What these rules find in one file with another text; None if it does not parse, or the linter fails on it.

        ``everywhere``: of what the files near it do not show, all files of the run are asked.
        """
        options = replace(self._options, codes=codes, coverage=False)
        changed = self._parser.changed(path, text)
        if changed.problems_of(path):
            return None
        near = self._neighbours.near(path, _MOST_NEAR)
        far = self._far_rules(path, near, options) & codes if everywhere else frozenset[str]()
        found: list[Finding] = []
        for rules, sources in ((codes - far, self._of(changed, near)), (far, changed.sources)):
            asked = replace(options, codes=rules)
            found += _findings_in(path, sources, asked, changed.representation, self._on_the_way(path)) if rules else ()
        return list(winners(found))

    def _on_the_way(self, path: str) -> set[str]:
        """A file, and those in which something stands that the run has found for it: the files whose operations are looked at."""
        return {path, *(step.span.file for one in self._found.get(path, ()) for step in one.trail)}

    def _far_rules(self, path: str, near: Iterable[str], options: Options) -> frozenset[str]:
        """The rules that are asked of all files of the run for one of them: the files near it do not show what the run has found."""
        found = self._far.get(path)
        if found is None:
            sources = self._of(self._parser, near)
            wanted = {(one.code, one.span) for one in self._found.get(path, ()) if one.code in hazards.registry()}
            if wanted and len(sources) < len(self._parser.sources):
                asked = replace(options, codes=frozenset(code for code, _ in wanted))
                shown = _findings_in(path, sources, asked, self._parser.representation, self._on_the_way(path))
                wanted -= {(one.code, one.span) for one in shown}
            else:
                wanted = set()
            found = self._far[path] = frozenset(code for code, _ in wanted)
        return found

    @cached_property
    def _neighbours(self) -> Neighbours:
        return hazards.neighbours(self._parser.sources, self._parser.representation)

    def _of(self, parser: Parser, paths: Iterable[str]) -> list[Source]:
        wanted = set(paths)
        return [source for source in parser.sources if source.path in wanted]


def _findings_in(
    path: str,
    sources: Sequence[Source],
    options: Options,
    lowered: Callable[[Source], ModuleIR | None],
    asked: Collection[str],
) -> list[Finding]:
    """The findings of one file. ``asked``: the files whose operations are looked at."""
    with deeper():
        return [one for one in hazards.find(sources, options, lowered, asked=asked).findings if one.span.file == path]
