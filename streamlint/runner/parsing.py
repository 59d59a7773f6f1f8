"""The sources of a run as intermediate representations: each is parsed when it is first asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from streamlint.cache.intermediate import Representations
from streamlint.config.options import Source
from streamlint.findings import Problem
from streamlint.frontends import LOST, MISPLACED, NOT_READ, MissingParser, UnreadableSource
from streamlint.frontends.inline import modules_in
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower
from streamlint.runner import progress
from streamlint.runner.comments import strip_comments
from streamlint.runner.workers import FEWEST, as_done
from streamlint.support import guard
from streamlint.support.lazy import lazy
from streamlint.support.memory import Parsed
from streamlint.support.records import replace

if TYPE_CHECKING:
    from streamlint.cache.store import Store
    from streamlint.frontends import cuda, cuda_headers, cython, python
    from streamlint.frontends.cuda_headers import Headers
    from streamlint.program import Module
else:
    cuda, cuda_headers, cython, python = lazy("streamlint.frontends", "cuda", "cuda_headers", "cython", "python")

WORTH_A_PROCESS = 1 << 16  # characters
PARSING = "parsing"
_REPORTED = (NOT_READ, MISPLACED)  # of C++ in strings, and of comments


class Parser:
    """The intermediate representations of the sources of a run, without comments. What a ``store`` holds of them is reused."""

    def __init__(self, sources: Sequence[Source], store: Store | None = None, others: Parser | None = None) -> None:
        self.sources = [strip_comments(source) for source in sources]
        self._store, self._parsed = store, Parsed()
        self._others = others  # knows all sources with the same text
        self._by_path = {source.path: source for source in self.sources}
        self._made: dict[str, ModuleIR | Problem] = {}

    @classmethod
    def received(cls, sources: Sequence[Source], parsed: Mapping[str, bytes | Problem]) -> Parser:
        """The sources of a run that were parsed elsewhere."""
        made = cls(sources)
        for path, answer in parsed.items():
            made.know(path, answer if isinstance(answer, Problem) else ModuleIR.load(path, answer))
        return made

    def sent(self) -> dict[str, bytes | Problem]:
        """What became of the sources, for somebody else."""
        made = {source.path: self._look(source.path) for source in self.sources}
        return {path: one if isinstance(one, Problem) else one.dump() for path, one in made.items()}

    def representation(self, source: Source) -> ModuleIR | None:
        """The intermediate representation of a source; None where it cannot be read."""
        made = self._look(source.path)
        return None if isinstance(made, Problem) else made

    def problems(self) -> list[Problem]:
        """What cannot be read of the sources."""
        progress.stage(PARSING, len(self.sources))
        found: list[Problem] = []
        for source in self.sources:
            progress.at(source.path)
            found += self.problems_of(source.path)
            progress.done()
        return found

    def problems_of(self, path: str) -> list[Problem]:
        """What cannot be read of one source."""
        return problems_of(path, self._look(path))

    def is_lost(self, path: str) -> bool:
        """Whether a source cannot be read."""
        return isinstance(self._look(path), Problem)

    def changed(self, path: str, text: str) -> Parser:
        """The same sources with another text of one of them."""
        sources = [replace(each, text=text, is_stripped=False) if each.path == path else each for each in self.sources]
        return Parser(sources, None, self)

    def ahead(self, jobs: int) -> None:
        """Parse what is not kept in several processes, if that is worth them."""
        waiting = {source.path: source for source in self.sources if self._known(source) is None}
        if jobs < 2 or len(waiting) < FEWEST or sum(len(source.text) for source in waiting.values()) < WORTH_A_PROCESS:
            return
        self._import(waiting.values())

        def work(path: str) -> bytes | Problem:
            made = self._make(waiting[path])
            return made if isinstance(made, Problem) else made.dump()

        for path, answer in as_done(work, list(waiting), jobs, lambda path: len(waiting[path].text), instead=Problem, stage=PARSING):
            self.know(path, answer if isinstance(answer, Problem) else ModuleIR.load(path, answer))

    def know(self, path: str, made: ModuleIR | Problem) -> None:
        """What became of a source."""
        self._made[path] = made

    def _look(self, path: str) -> ModuleIR | Problem:
        source = self._by_path[path]
        found = self._known(source)
        if found is None:
            found = self._made[path] = self._make(source)
        return found

    def _known(self, source: Source) -> ModuleIR | Problem | None:
        """What is known of a source without parsing it."""
        if self._others is not None and self._others._by_path.get(source.path) is source:
            return self._others._look(source.path)
        if source.path not in self._made and self._kept is not None and (kept := self._kept.load(source)) is not None:
            self._made[source.path] = kept
        return self._made.get(source.path)

    def _make(self, source: Source) -> ModuleIR | Problem:
        made = parsed(source, self._headers if source.language == "cuda" else None)
        self._parsed.add(len(source.text))
        if self._kept is not None and not isinstance(made, Problem):
            self._kept.keep(source, made)
        return made

    @cached_property
    def _headers(self) -> Headers | None:
        return headers_of(self.sources)

    @cached_property
    def _kept(self) -> Representations | None:
        if self._store is None:
            return None
        return Representations(self._store.base, lambda: self._headers)

    def _import(self, sources: Iterable[Source]) -> None:
        """What the processes share: the parsers, and the C++ that is included."""
        languages = {source.language for source in sources}
        with contextlib.suppress(Exception):  # each file reports what is missing
            if languages - {"cuda"}:
                _ = python.lower
            if "cuda" in languages:
                _ = cuda.lower
        _ = self._headers


def headers_of(sources: Iterable[Source]) -> Headers | None:
    """The C++ sources, for those that include them."""
    texts = {source.path: source.text for source in sources if source.language == "cuda"}
    if not texts:
        return None
    return cuda_headers.Headers(texts)


def problems_of(path: str, made: ModuleIR | Problem) -> list[Problem]:
    """What cannot be read of a source."""
    if isinstance(made, Problem):
        return [made]
    found = [Problem(path, text, *at[:2], lost=True) for at, text in made.problems if text.startswith(LOST)]
    return found + [Problem(path, text, *at[:2]) for at, text in made.problems if text.startswith(_REPORTED)]


def parsed(source: Source, headers: Headers | None) -> ModuleIR | Problem:
    """A source parsed and lowered, with the C++ in its strings, or why it cannot be. ``headers`` hold the macros that C++ includes."""
    guard.at(source.path)
    try:
        module = _to_module(source, headers)
        if source.language == "python":
            module.inline = modules_in(module)
        return lower(module)
    except UnreadableSource as error:
        return Problem(source.path, error.message, error.row, error.column, lost=not isinstance(error, MissingParser))
    except RecursionError:
        return Problem(source.path, "left out: code is nested too deeply", lost=True)
    except Exception as error:  # a fault of ours costs a file, never the run
        return Problem(source.path, f"left out: internal error while it was read: {type(error).__name__}: {error}", lost=True)
    finally:
        guard.at("")


def _to_module(source: Source, headers: Headers | None) -> Module:
    if source.language == "cuda":
        return cuda.lower(source.path, source.text, headers)
    if source.language == "cython":
        return cython.lower(source.path, source.text)
    return python.lower(source.path, strip_comments(source).text)
