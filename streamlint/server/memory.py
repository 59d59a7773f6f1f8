"""An engine that remembers: what was lowered once is lowered again only if its text, or a header that it sees, has changed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamlint import engine
from streamlint.analysis import Analysis
from streamlint.findings import Finding, Problem
from streamlint.interpreter.index import File, Program
from streamlint.interpreter.roots import Root
from streamlint.options import Options, Source
from streamlint.program import Module
from streamlint.seams import INCLUDE

if TYPE_CHECKING:
    from streamlint.frontends.cuda_headers import Headers

MOST = 400  # lowered files that are kept

Key = tuple[object, ...]


@dataclass(slots=True)
class Part:
    """What the roots of one file gave, and the texts that this rests on."""

    options: Options
    sources: list[Source]
    program: Program
    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def text_of(self, path: str) -> str | None:
        """The text that a file had."""
        return next((source.text for source in self.sources if source.path == path), None)


class Memory:
    """Lowered files by path."""

    def __init__(self, breathe: Callable[[], None]) -> None:
        self._breathe = breathe  # called now and then: it raises where the work is no longer wanted
        self._modules: dict[str, tuple[Key, Module | Problem]] = {}
        self._fresh = False

    def look(self, path: str, sources: Sequence[Source], options: Options) -> Part:
        """Run the roots of one file, among the sources."""
        collecting = gc.isenabled()
        gc.disable()  # as in the engine: syntax trees live on
        try:
            part = Part(options, list(sources), Program())
            self._lower(part, path)
            for name in [name for name, file in part.program.files.items() if file.path == path]:
                told = _Breathing(part.program, options, self._breathe).check(name)
                part.findings += told.findings
                part.problems += told.problems
            return part
        finally:
            if collecting:
                gc.enable()

    def _lower(self, part: Part, path: str) -> None:
        """Lower the file itself last: what is collected behind its run need not look at the others, which stay."""
        headers, included = engine.headers_of(part.sources), _included(part.sources)
        ready: dict[str, Module | Problem] = {}
        for own in (False, True):
            for source in part.sources:
                if (source.path == path) is own:
                    ready[source.path] = self._lowered(source, headers, included)
            if not own and self._fresh:
                gc.freeze()
                self._fresh = False
        for source in part.sources:  # in the order of a run
            module = ready[source.path]
            if isinstance(module, Problem):
                part.problems.append(module)
            else:
                engine.take(module, source.language, part.options, part.program)
        while len(self._modules) > MOST:
            del self._modules[next(iter(self._modules))]

    def _lowered(self, source: Source, headers: Headers | None, included: list[tuple[str, str]]) -> Module | Problem:
        key: Key = (source.text, source.language)
        if source.language == "cuda":
            key += tuple((path, text) for path, text in included if path != source.path)
        known = self._modules.pop(source.path, None)
        if known is None or known[0] != key:
            self._breathe()
            self._fresh = True
            known = (key, engine.lowered(source, headers))
        self._modules[source.path] = known  # the last one is the one used last
        return known[1]


def tidy() -> None:
    """Collect what was dropped, in a quiet moment."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class _Breathing(Analysis):
    """An analysis that can be broken off before each root."""

    def __init__(self, program: Program, options: Options, breathe: Callable[[], None]) -> None:
        super().__init__(program, options)
        self._breathe = breathe

    def roots(self, file: File) -> Iterator[Root]:
        for root in super().roots(file):
            self._breathe()
            yield root


def _included(sources: Sequence[Source]) -> list[tuple[str, str]]:
    """The C++ files that others may take macros from."""
    cuda = [source for source in sources if source.language == "cuda"]
    names = {name.replace("\\", "/").rpartition("/")[2] for source in cuda for name in INCLUDE.findall(source.text)}
    return [(source.path, source.text) for source in cuda if source.path.rpartition("/")[2] in names]
