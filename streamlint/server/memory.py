"""An engine that remembers: what was lowered once is lowered again only if its text, or a header that it sees, has changed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamlint import engine
from streamlint.analysis import Analysis
from streamlint.findings import Finding, Problem
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.index import File, Program
from streamlint.interpreter.roots import Root
from streamlint.interpreter.run import Coverage
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower
from streamlint.memory import freeze, thaw
from streamlint.options import Options, Source
from streamlint.program import Module
from streamlint.seams import INCLUDE
from streamlint.server.kept import Edit, untouched
from streamlint.whole import kinds

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
    roots: dict[tuple[str, int], list[Finding]] = field(default_factory=dict)  # what each root gave, by name and row
    waits: list[Finding] = field(default_factory=list)  # what the Python files gave as a whole, in this one
    partial: bool = False  # whether some of it was kept from the text before

    def text_of(self, path: str) -> str | None:
        """The text that a file had."""
        return next((source.text for source in self.sources if source.path == path), None)


class Memory:
    """Lowered files by path."""

    def __init__(self, breathe: Callable[[], None]) -> None:
        self._breathe = breathe  # called now and then: it raises where the work is no longer wanted
        self._modules: dict[str, tuple[Key, Module | Problem]] = {}
        self._representations: dict[str, tuple[Module, ModuleIR]] = {}
        self._fresh = False

    def look(self, path: str, sources: Sequence[Source], options: Options, before: Part | None = None) -> Part:
        """Run the roots of one file, among the sources; with a part before, only those that can see what has changed since."""
        collecting = gc.isenabled()
        gc.disable()  # as in the engine: syntax trees live on
        try:
            part = Part(options, list(sources), Program())
            self._lower(part, path)
            for name in [name for name, file in part.program.files.items() if file.path == path]:
                told = _Breathing(part, path, self._breathe, before).check(name)
                part.findings += told.findings
                part.problems += told.problems
            part.waits = self._waits(part, path, before)
            part.findings += part.waits
            return part
        finally:
            if collecting:
                gc.enable()

    def _waits(self, part: Part, path: str, before: Part | None) -> list[Finding]:
        """What the rules that look at the program as a whole find in the file; between two keys it stands where it stood."""
        if isinstance(self._modules[path][1], Problem):
            return []  # it does not parse
        text, old = part.text_of(path), before.text_of(path) if before is not None else None
        if before is not None and old is not None and text is not None and _same_around(before, part, path):
            part.partial |= old != text
            return list(map(Edit.between(old, text).finding, before.waits))
        found: list[Finding] = []
        for kind in kinds():
            if not part.options.codes or part.options.codes & kind.codes:
                asked = [source for source in part.sources if source.language in kind.languages]
                found += kind.find(asked, part.options, self._intermediate).findings if asked else []
        return [finding for finding in found if finding.span.file == path]

    def _intermediate(self, source: Source) -> ModuleIR | None:
        self._breathe()
        module = self._modules[source.path][1] if source.path in self._modules else None
        if module is None or isinstance(module, Problem):
            return None
        known = self._representations.get(source.path)
        if known is None or known[0] is not module:
            known = self._representations[source.path] = module, lower(module)
        return known[1]

    def _lower(self, part: Part, path: str) -> None:
        """Lower the file itself last: what is collected behind its run need not look at the others, which stay."""
        headers, included = engine.headers_of(part.sources), _included(part.sources)
        ready: dict[str, Module | Problem] = {}
        for own in (False, True):
            for source in part.sources:
                if (source.path == path) is own:
                    ready[source.path] = self._lowered(source, headers, included)
            if not own and self._fresh:
                freeze()
                self._fresh = False
        for source in part.sources:  # in the order of a run
            module = ready[source.path]
            if isinstance(module, Problem):
                part.problems.append(module)
            else:
                engine.take(module, source.language, part.options, part.program)
        while len(self._modules) > MOST:
            oldest = next(iter(self._modules))
            del self._modules[oldest]
            self._representations.pop(oldest, None)

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
    """Collect what was dropped, in a quiet moment, also what the interpreter's caches hold of former texts."""
    for name, module in list(sys.modules.items()):
        if name.startswith("streamlint.interpreter."):
            for value in list(vars(module).values()):
                parameters = getattr(value, "cache_parameters", None)
                if parameters is not None and parameters()["maxsize"] is not None:
                    value.cache_clear()
    thaw()
    gc.collect()
    freeze()


class _Breathing(Analysis):
    """An analysis that can be broken off before each root, and that keeps what roots gave."""

    def __init__(self, part: Part, path: str, breathe: Callable[[], None], before: Part | None) -> None:
        super().__init__(part.program, part.options)
        self._part, self._breathe, self._before, self._edit = part, breathe, before, None
        old = before.program.files.get(path) if before is not None and _same_around(before, part, path) else None
        new = part.program.files.get(path)
        if old is not None and new is not None:
            self._edit = Edit.between(old.module.text, new.module.text)
            self._keeps = untouched(old.module, new.module, self._edit)

    _edit: Edit | None
    _keeps: Callable[[int], bool] | None = None

    def roots(self, file: File) -> Iterator[Root]:
        for root in super().roots(file):
            self._breathe()
            yield root

    def _check_root(self, root: Root, facts: FileFacts, coverage: Coverage) -> Iterator[Finding]:
        row = root.function.at[0] if root.function is not None else 0
        key = (root.qualname, row)
        found = self._kept(root, row)
        if found is None:
            found = list(super()._check_root(root, facts, coverage))
        else:
            self._part.partial = True
        self._part.roots[key] = found
        yield from found

    def _kept(self, root: Root, row: int) -> list[Finding] | None:
        edit, before = self._edit, self._before
        if edit is None or before is None or self._keeps is None or not self._keeps(row):
            return None
        was = next((each for each in before.roots if each[0] == root.qualname and edit.row(each[1]) == row), None)
        return [edit.finding(finding) for finding in before.roots[was]] if was is not None and not root.binding else None


def _same_around(before: Part, part: Part, path: str) -> bool:
    """Whether only the file itself has another text."""
    around = [[(source.path, source.text) for source in each.sources if source.path != path] for each in (before, part)]
    return before.options == part.options and around[0] == around[1]


def _included(sources: Sequence[Source]) -> list[tuple[str, str]]:
    """The C++ files that others may take macros from."""
    cuda = [source for source in sources if source.language == "cuda"]
    names = {name.replace("\\", "/").rpartition("/")[2] for source in cuda for name in INCLUDE.findall(source.text)}
    return [(source.path, source.text) for source in cuda if source.path.rpartition("/")[2] in names]
