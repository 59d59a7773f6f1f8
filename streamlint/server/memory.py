"""An engine that remembers: a file is reparsed only if its text, or a header that it sees, has changed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from streamlint.config.options import Options, Source
from streamlint.discovery.seams import INCLUDE
from streamlint.findings import Finding, Problem
from streamlint.hazards import findings as hazards
from streamlint.ir import ModuleIR
from streamlint.runner import parsing
from streamlint.runner.parsing import Parser
from streamlint.runner.tasks import codes_of, kinds
from streamlint.server.kept import Edit
from streamlint.support.memory import freeze, thaw
from streamlint.support.recursion import deeper

MOST = 400  # files that are kept
SOON = 200_000  # characters: a program of so many is asked between two keys

Key = tuple[object, ...]


@dataclass(slots=True)
class Part:
    """What was found in one file, and the texts that this rests on."""

    options: Options
    sources: list[Source]
    parser: Parser
    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    partial: bool = False  # whether it was kept from the text before

    def text_of(self, path: str) -> str | None:
        """The text that a file had."""
        return next((source.text for source in self.sources if source.path == path), None)


class Memory:
    """Lowered files by path."""

    def __init__(self, breathe: Callable[[], None]) -> None:
        self._breathe = breathe  # called now and then: it raises where the work is no longer wanted
        self._made: dict[str, tuple[Key, ModuleIR | Problem]] = {}
        self._fresh = False

    def look(self, path: str, sources: Sequence[Source], options: Options, before: Part | None = None) -> Part:
        """What stands in one file, among the sources.

        With a part before that the file alone is new to, and much text, it is what that had found, moved.
        """
        collecting = gc.isenabled()
        gc.disable()  # as in the engine: what is lowered lives on
        try:
            parser = Parser(sources)
            self._parse(parser, path)
            part = Part(options, list(sources), parser, problems=parser.problems())
            if not parser.is_lost(path):
                part.findings = self._found(part, path, before)
            return part
        finally:
            if collecting:
                gc.enable()

    def _found(self, part: Part, path: str, before: Part | None) -> list[Finding]:
        text, old = part.text_of(path), before.text_of(path) if before is not None else None
        large = sum(len(source.text) for source in part.sources) > SOON
        if large and before is not None and old is not None and text is not None and _same_around(before, part, path):
            part.partial, edit = True, Edit.between(old, text)
            return [edit.finding(finding) for finding in before.findings if not edit.touches(finding)]
        found: list[Finding] = []
        for kind in kinds(part.options):
            self._breathe()
            asked = [source for source in part.parser.sources if source.language in kind.languages]
            find = partial(hazards.find, breathe=self._breathe) if kind.find is hazards.find else kind.find
            with deeper():
                found += find(asked, part.options, self._representation(part.parser)).findings if asked else []
        return [finding for finding in found if finding.code in codes_of(part.options)]

    def _representation(self, parser: Parser) -> Callable[[Source], ModuleIR | None]:
        def ask(source: Source) -> ModuleIR | None:
            self._breathe()
            return parser.representation(source)

        return ask

    def _parse(self, parser: Parser, path: str) -> None:
        """Parse the file itself last: what is collected behind its run need not look at the others, which stay."""
        headers, included = parsing.headers_of(parser.sources), _included(parser.sources)
        for own in (False, True):
            for source in parser.sources:
                if (source.path == path) is own:
                    key: Key = (source.text, source.language)
                    if source.language == "cuda":
                        key += tuple((other, text) for other, text in included if other != source.path)
                    known = self._made.pop(source.path, None)
                    if known is None or known[0] != key:
                        self._breathe()
                        self._fresh = True
                        known = (key, parsing.parsed(source, headers if source.language == "cuda" else None))
                    self._made[source.path] = known  # the last one is the one used last
                    parser.know(source.path, known[1])
            if not own and self._fresh:
                freeze()
                self._fresh = False
        while len(self._made) > MOST:
            del self._made[next(iter(self._made))]


def tidy() -> None:
    """Collect what was dropped, in a quiet moment."""
    thaw()
    gc.collect()
    freeze()


def _same_around(before: Part, part: Part, path: str) -> bool:
    """Whether only the file itself has another text."""
    around = [[(source.path, source.text) for source in each.sources if source.path != path] for each in (before, part)]
    return before.options == part.options and around[0] == around[1]


def _included(sources: Sequence[Source]) -> list[tuple[str, str]]:
    """The C++ files that others may take macros from."""
    cuda = [source for source in sources if source.language == "cuda"]
    names = {name.replace("\\", "/").rpartition("/")[2] for source in cuda for name in INCLUDE.findall(source.text)}
    return [(source.path, source.text) for source in cuda if source.path.rpartition("/")[2] in names]
