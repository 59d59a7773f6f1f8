"""The sources of a run, analysed as far as nothing is kept of them: findings are the same as those of a run that starts anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from streamlint import build, guard, progress
from streamlint.bare import bare
from streamlint.cache.store import digest
from streamlint.cache.units import BUILT_OF_NATIVES, Unit, Units, View, holds, is_as_it_was, native_hash, rests_on, trial_rests_on
from streamlint.findings import Fix, Report
from streamlint.interpreter.index import Program, imported_names
from streamlint.interpreter.interface import Interface
from streamlint.options import Options, Source
from streamlint.record import replace

if TYPE_CHECKING:
    from streamlint.analysis import Analysis, Part
    from streamlint.cluster.job import Answer, Job

Lower = Callable[[Source, Program, Report], None]
Ahead = Callable[[list[Source]], None]  # is told what is lowered next
MANY = 8  # with so many to check, everything is lowered before the work is shared


class Incremental:
    """A program whose files are lowered when they are needed, and the units that are kept of it. ``units`` is None without a cache.

    ``ahead`` is told which sources are lowered at once, before ``lower`` is asked for each of them. ``made_of`` names what
    lowered C++ was made of, as long as that is the same.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        lower: Lower,
        units: Units | None,
        ahead: Ahead | None = None,
        made_of: Callable[[Source], str] | None = None,
    ) -> None:
        self.program, self.report = Program(), Report(files=len(sources))
        sources = [bare(source) for source in sources]
        self._sources, self._lower, self._units = {source.path: source for source in sources}, lower, units
        self._ahead = ahead
        self._hashes = {source.path: digest(source.text) for source in sources} if units else {}
        self._made: dict[str, Unit] = {}
        self.kept: dict[str, Unit] = {}  # what holds
        self._only: frozenset[str] | None = None
        self.program.files.expect(self._sources)
        python = [source for source in sources if source.language == "python"]
        others = [source for source in sources if source.language != "python"]
        self._take(python, "")
        self._natives = [s.path for s in sources if s.language != "python" or len(self._outline(s.path)) > 1]
        self.native = native = native_hash(self._natives, self._hashes) if units else ""
        self._take(others, native)
        self.program.files.together = tuple(self._natives)
        outlines = {key: names for path in self._sources for key, names in self._outline(path).items()}
        self.program.outlines = outlines
        parsed, seen = [path for path in self._sources if self._outline(path)], self._interface(native)
        cpp = frozenset(source.path for source in others if source.language == "cuda")
        trees = (lambda path: made_of(self._sources[path])) if made_of is not None else None
        said = self.program.answers.said
        block = frozenset(self._natives)
        self._view = View(self._hashes, outlines, self.program.texts, native, seen, parsed, cpp, block, trees, said)
        self._paths = ""
        if units is not None:
            self._paths = units.keep_paths(self._view.paths)
            self.kept = {path: self._made[path] for path in self._view.paths if self._holds(path, units)}
            for path in self._sources.keys() - set(self._view.paths):  # what does not parse is not tried again
                units.keep(self._sources[path], self._hashes[path], replace(self._made[path], native=native, parts=[]))
        self.open = [path for path in self._view.paths if path not in self.kept]

    @property
    def sources(self) -> list[Source]:
        """All sources, without comments."""
        return list(self._sources.values())

    def _holds(self, path: str, units: Units) -> bool:
        """Whether what is kept of a source is what a run would find; among other C++ than before, this is noted."""
        unit = self._made[path]
        guard.at(path)
        try:
            if not holds(unit, self._view, units.store):
                return False
        except Exception:  # a fault of ours is told once the file is checked
            return False
        finally:
            guard.at("")
        if "asked" in unit.rests and unit.rests.get("native") != self.native:
            unit.rests["native"] = unit.native = self.native
            units.keep(self._sources[path], self._hashes[path], unit)
        return True

    def _interface(self, native: str) -> str:
        """A hash of what Python may see of the C++, which need not be there for it where it is as it was."""
        if self._units is None:
            return ""
        record = self._units.interface(native) if native else Interface().record()
        if record is None:
            record = self.program.interface.record()
            self._units.keep_interface(native, record)
        self.program.known_interface = Interface(**record)
        return digest(repr(sorted(record.items())))

    def _take(self, sources: list[Source], native: str) -> None:
        """Sources of which something is kept wait; the others are lowered. C++ is lowered as a whole: what it includes counts."""
        found = {s.path: unit for s in sources if self._units and (unit := self._units.load(s, self._hashes[s.path])) is not None}
        whole = any(source.path not in found or found[source.path].native != native for source in sources)
        if self._ahead is not None:
            self._ahead([source for source in sources if source.path not in found or (whole and source.language != "python")])
        progress.stage("parsing", len(sources))
        for source in sources:
            progress.at(source.path)
            unit = found.get(source.path)
            if unit is None or (whole and source.language != "python"):
                self._lowered(source)
                if unit is not None and source.language == "cuda":
                    self._made[source.path].parts, self._made[source.path].rests = unit.parts, unit.rests
                continue
            self._made[source.path] = unit
            self.report.problems += unit.problems
            if unit.outline:
                if source.language != "cuda":
                    self.program.texts[source.path] = source.text
                self.program.wait(source.path, lambda source=source: self._lower(source, self.program, Report()))  # type: ignore[misc]

    def _lowered(self, source: Source) -> None:
        report = Report()
        self._lower(source, self.program, report)
        self._made[source.path] = Unit(self._names(source.path), report.problems)
        self.report.problems += report.problems

    def _names(self, path: str) -> dict[str, list[str]]:
        files = self.program.files
        return {key: sorted(imported_names(files[key].module)) for key in files.of(path)}

    def _outline(self, path: str) -> dict[str, frozenset[str]]:
        return {key: frozenset(names) for key, names in self._made[path].outline.items()}

    def ready(self) -> None:
        """Lower what is sure to be asked for."""
        if self._units is None or len(self.open) >= MANY:
            self.program.files.load_all()
        else:
            self.program.files.load(self.open)

    def check(self, analysis: Analysis) -> Callable[[str], tuple[list[Part], dict[str, object]]]:
        """Work that gives the parts of one source, and what they rest on."""

        def work(path: str) -> tuple[list[Part], dict[str, object]]:
            self.program.consulted.begin()
            parts = [analysis.check(key) for key in self._made[path].outline]
            if self._units is None:
                return parts, {}
            return parts, rests_on(self.program, path, self._natives, self._view, self._paths)

        return work

    def job(self, options: Options) -> Job:
        """All that somebody else needs to check the same sources."""
        from streamlint.cluster.job import Job

        hashes = self._hashes or {path: digest(source.text) for path, source in self._sources.items()}
        self.native = native_hash(self._natives, hashes)
        units = {path: Unit(made.outline, made.problems, self.native) for path, made in self._made.items()}
        return Job(
            os.getcwd(), tuple(self._sources.values()), options, units, self._paths, self.program.interface.record(), guard.seconds()
        )

    def believes(self, answer: Answer) -> bool:
        """Whether what somebody else found rests on what build files say here."""
        said = answer.rests["built"]
        return answer.native == self.native and all(build.plain_answer(build.answer(word, path)) == told for path, word, told in said)

    def done(self, path: str, parts: list[Part], rests: dict[str, object]) -> None:
        """Keep what was found."""
        made = self._made[path]
        self.kept[path] = unit = Unit(made.outline, made.problems, self._view.native, rests, parts)
        if self._units is not None:
            self._units.keep(self._sources[path], self._hashes[path], unit)

    def fixes(self, path: str) -> dict[str, Fix | None]:
        """The fixes that were tried for what a source gave, by the names of what they mend, if they would be tried alike now."""
        unit = self.kept.get(path)
        if unit is None or self._units is None or not unit.fixes:
            return {}
        try:
            return unit.fixes if all(is_as_it_was(rests, self._view, self._units.store) for rests in unit.tried) else {}
        except Exception:  # nobody of ours has written that
            return {}

    def trial(self, program: Program, path: str) -> dict[str, object]:
        """What was just found of a source with another text, in a program of its own, rests on; nothing without a cache."""
        return trial_rests_on(program, path, self._natives, self._view, self._paths) if self._units is not None else {}

    def tried(self, path: str, fixes: dict[str, Fix | None], rests: list[dict[str, object]]) -> None:
        """Keep what became of the trials for a source."""
        unit = self.kept.get(path)
        if unit is not None and self._units is not None:
            unit.fixes, unit.tried = fixes, rests
            self._units.keep(self._sources[path], self._hashes[path], unit)

    def size(self, path: str) -> int:
        """How much work a source may be."""
        return len(self._sources[path].text)

    def narrow(self, only: Collection[str]) -> None:
        """Check and tell these sources alone; the others stand around them."""
        self._only = frozenset(only)
        self.open = [path for path in self.open if path in self._only]

    def parts(self) -> Iterator[tuple[str, Part]]:
        """All parts with their paths, in the order of the sources."""
        for path in self._view.paths:
            if self._only is None or path in self._only:
                yield from ((path, part) for part in self.kept[path].parts or ())

    def built(self) -> list[list[object]]:
        """What build files said of all that was asked for."""
        if self._units is None:
            return []
        rows = {
            (path, word): [path, word, build.plain_answer(build.answer(word, path))] for path in self._natives for word in BUILT_OF_NATIVES
        }
        rows |= {(row[0], row[1]): row for unit in self.kept.values() for row in unit.rests.get("built", ())}
        return [rows[key] for key in sorted(rows)]
