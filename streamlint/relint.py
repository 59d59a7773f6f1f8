"""A file of a run looked at once more with another text, among the files that it was read with."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
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
        self._neighbours: Any = None
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

        def kept(source: Source) -> Any:
            if source.path not in self._lowered:
                known = self._program.files.get(source.path)
                self._lowered[source.path] = lower(known.module) if known is not None else None
            return self._lowered[source.path]

        def changing(source: Source) -> Any:
            return lower(program.files[path].module) if source.path == path else kept(source)

        def told(sources: Iterable[Source], options: Options, lowered: Callable[[Source], Any]) -> list[Finding]:
            found = hazards.find([bare(one) for one in sources], options, lowered).findings
            return [finding for finding in found if finding.span.file == path]

        changed = {**self._sources, path: replace(self._sources[path], text=text)}
        if self._neighbours is None:
            self._neighbours = hazards.neighbours(list(self._sources.values()), kept)
        near = self._neighbours.near(path, _MOST_NEAR)
        if path not in self._suffices:
            wanted = {(one.code, one.span) for one in self._found.get(path, ()) if one.code in hazards.codes()}
            asked = replace(options, codes=frozenset(code for code, _ in wanted))
            shown = told([self._sources[each] for each in near], asked, kept) if wanted and len(near) < len(self._sources) else ()
            self._suffices[path] = wanted <= {(one.code, one.span) for one in shown}
        return told([changed[each] for each in near] if self._suffices[path] else changed.values(), options, changing)

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
