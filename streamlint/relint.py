"""A file of a run looked at once more with another text, among the files that it was read with."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from streamlint import engine
from streamlint.bare import bare
from streamlint.findings import Finding, Fix, Report
from streamlint.options import Options, Source
from streamlint.precedence import winners
from streamlint.record import replace

if TYPE_CHECKING:
    from streamlint.incremental import Incremental


_MOST_NEAR = 24
"""Files that a trial asks beside the changed one, if they show what the run has found."""


class Relint:
    """The sources of a run, of which one is changed."""

    def __init__(self, sources: Sequence[Source], options: Options) -> None:
        self._sources, self._options = {source.path: source for source in sources}, options
        self._program: Any = None
        self._found: Mapping[str, Sequence[Finding]] = {}
        self._work: Incremental | None = None
        self._lowered: dict[str, Any] = {}  # the intermediate representation of the files that stay
        self._suffices: dict[str, bool] = {}  # whether the files near one show what the run has found in it
        self._rests: list[dict[str, object]] = []  # of the trials since somebody asked

    def keep(self, program: Any, found: Mapping[str, Sequence[Finding]] = MappingProxyType({}), work: Incremental | None = None) -> None:
        """Spares the work of doing again what the run has done; ``work`` knows what of the trials is kept."""
        self._program, self._found, self._work = program, found, work
        if program is not None:  # else it is made once a text is tried
            program.outline()

    def found(self, path: str) -> list[Finding]:
        """What the run itself found from one file, by its own rules."""
        return list(winners(self._found.get(path, ())))

    def known(self, path: str) -> dict[str, Fix | None]:
        """The fixes that earlier runs have tried for what was found in a file, by the names of what they mend."""
        return self._work.fixes(path) if self._work is not None else {}

    def rests(self) -> list[dict[str, object]]:
        """What the trials rest on that were made since this was asked last."""
        rests, self._rests = self._rests, []
        return rests

    def tried(self, path: str, fixes: dict[str, Fix | None], rests: list[dict[str, object]]) -> None:
        """Keep what became of the trials for a file."""
        if self._work is not None:
            self._work.tried(path, fixes, rests)

    def findings(self, path: str, text: str, codes: frozenset[str]) -> list[Finding] | None:
        """What these rules find in one file with another text; None if it does not parse, or the linter fails on it."""
        from streamlint.analysis import Analysis

        options, report = replace(self._options, codes=codes, coverage=False), Report()
        program = self._with(path, text, report)
        if report.problems:
            return None
        analysis = Analysis(program, options)
        program.consulted.begin()
        parts = [analysis.check(name) for name in program.files.of(path)]
        if self._work is not None and (rests := self._work.trial(program, path)) not in self._rests:
            self._rests.append(rests)
        if any(part.problems for part in parts):
            return None
        found = [finding for part in parts for finding in part.findings]
        return list(winners([*found, *self._of_whole(path, text, options, program)]))

    def _of_whole(self, path: str, text: str, options: Options, program: Any) -> list[Finding]:
        """What the rules that are asked of the program as a whole tell of one file with another text."""
        from streamlint.hazards import findings as hazards
        from streamlint.ir.modules import lower

        def lowered(source: Source) -> Any:
            known = program.files.get(source.path)
            if source.path == path:
                return lower(known.module) if known is not None else None
            if source.path not in self._lowered:
                self._lowered[source.path] = lower(known.module) if known is not None else None
            return self._lowered[source.path]

        def told(sources: Sequence[Source], text: str) -> list[Finding]:
            asked = [bare(replace(one, text=text) if one.path == path else one) for one in sources]
            return [finding for finding in hazards.find(asked, options, lowered).findings if finding.span.file == path]

        near = self._near(path)
        if len(near) == len(self._sources):
            return told(near, text)
        if path not in self._suffices:
            wanted = {(one.code, one.span) for one in self._found.get(path, ()) if one.code in hazards.codes()}
            self._suffices[path] = wanted <= {(one.code, one.span) for one in told(near, self._sources[path].text)}
        return told(near if self._suffices[path] else list(self._sources.values()), text)

    def _near(self, path: str) -> list[Source]:
        """The files that a trial of a file asks: those that imports tie to it, the nearest first; with C++ or Cython all of them."""
        if self._sources[path].language != "python":
            return list(self._sources.values())
        found, waiting = {path: None}, [path]
        for current in waiting:
            for other in self._beside.get(current, ()):
                if other not in found and len(found) < _MOST_NEAR:
                    found[other] = None
                    waiting.append(other)
        return [self._sources[each] for each in sorted(found)]

    @functools.cached_property
    def _beside(self) -> dict[str, list[str]]:
        """By file: those that it imports, and those that import it."""
        from streamlint.interpreter.words import imports_among, lasts_of, module_path

        outlines, found = self._program.outlines, defaultdict[str, list[str]](list)
        lasts = {last for each in self._sources for last in lasts_of(each)}
        resolve = lambda dotted, asking: module_path(dotted, asking, self._sources.__contains__, lasts)  # noqa: E731
        for importing, imported in imports_among(self._sources, lambda each: outlines.get(each, ()), resolve).items():
            for each in sorted(imported):
                found[importing].append(each)
                found[each].append(importing)
        return found

    def _with(self, path: str, text: str, report: Report) -> Any:
        """The program with one text changed; of the others each is lowered once, when it is asked for."""
        from streamlint.incremental import Incremental
        from streamlint.interpreter.index import Program

        if self._program is None:
            sources = list(self._sources.values())
            self._program = Incremental(sources, engine.reader(sources, self._options), None).program
        changed, program, held = replace(self._sources[path], text=text), Program(), self._program
        program.files.expect(self._sources)
        program.outlines = {key: names for key, names in held.outlines.items() if key.partition("#inline")[0] != path}
        program.texts.update(held.texts)
        program.files.together = tuple(native for native in held.files.together if native != path)
        read = engine.reader(list({**self._sources, path: changed}.values()), self._options)
        native, parts = frozenset(program.files.together), defaultdict(list)
        for key in held.outlines:
            parts[key.partition("#inline")[0]].append(key)
        for other in [key for key in held.outlines if "#inline" not in key]:
            if other == path:
                read(changed, program, report)
            elif other in native:
                self._adopt(other, parts[other], program)  # now, in order
            else:
                program.wait(other, functools.partial(self._adopt, other, parts[other], program))
        return program

    def _adopt(self, path: str, keys: Sequence[str], program: Any) -> None:
        """Take over a file with the C++ in its strings."""
        for key in keys:
            file = self._program.files[key]
            program.add(file.module, file.models, key=key if key != path else None)
