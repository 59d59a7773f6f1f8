"""A folder under lint: its files as they are on disk, or as the editor holds them, and what was found in them."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamlint.config.options import Options, Source
from streamlint.config.settings import Resolver
from streamlint.discovery.files import Found, discover, left_out, matches
from streamlint.discovery.hip_ports import is_port, speaks_hip_alone
from streamlint.discovery.screening import is_generated
from streamlint.discovery.triggers import relevant, seam
from streamlint.findings import Finding, Report
from streamlint.fix.trial import Trial
from streamlint.runner import linter
from streamlint.runner.relint import Relint
from streamlint.runner.repairs import Repairs, repairs, trial_of, trials
from streamlint.server.memory import Memory, Part
from streamlint.server.near import Entry, Map, program_in
from streamlint.support.errors import StreamlintError
from streamlint.support.notebooks import sources_of
from streamlint.support.reading import Unreadable, encode, is_notebook, language_of, read_source
from streamlint.trace.profile import FILE, Profile, load
from streamlint.triage.ignores import add_ignores
from streamlint.triage.precedence import winners

MOST_PASSES = 10  # of fixes, as on the command line


@dataclass(slots=True)
class Open:
    """An open document: its text, of a notebook the program in it, and the bytes that a file of it would hold."""

    text: str
    language: str
    data: bytes
    report: Report | None = None  # of this text
    trial: Trial | None = None


@dataclass(slots=True)
class Project:
    """One folder of the workspace, or the folder of a file that is in none (``alone``: nothing else of it is read).

    All paths are as a run in this folder shows them; the caller has gone there.
    """

    root: Path
    resolver: Resolver
    memory: Memory
    alone: bool = False
    open: dict[str, Open] = field(default_factory=dict)
    _entries: dict[str, Entry] | None = None
    _map: Map | None = None
    _parts: dict[str, Part] = field(default_factory=dict)
    _dirty: set[str] = field(default_factory=set)
    _profile: tuple[int, Profile | None] = (0, None)  # when the file was written, and what it says

    def put(self, path: str, text: str | None, language: str) -> None:
        """The editor's text of a file; None once it is closed."""
        if text is None:
            self.open.pop(path, None)
            self._parts.pop(path, None)
            self.touch(path)
            return
        opened = _opened(path, text, language_of(path) or language)
        if path in self.open and self.open[path].data == opened.data:
            return
        self.open[path] = opened
        if self._entries is not None and (found := self._wanted(path)) is not None:
            self._enter(found, opened.data)

    def touch(self, path: str) -> None:
        """A file that may be new, changed or gone: files that were read with it are re-linted; all files where it is new or gone."""
        if self._entries is None or path in self.open:
            return
        was = self._entries.pop(path, None)
        if os.path.isfile(path) and (found := self._wanted(path)) is not None:
            self._read(found, self._entries)
        around = {name for name, part in self._parts.items() if part.text_of(path) is not None}
        if (was is None) is not (path not in self._entries):
            around, self._map = set(self.open), None
        self._dirty |= around & set(self.open)

    def lint(self, path: str, whole: bool = True) -> dict[str, Report]:
        """What a run in the folder finds in an open document, as far as the roots of open documents show it, and in others what changed.

        Not ``whole``, entry points that cannot see the last edit keep their findings.
        """
        before, known = self._parts.get(path), self.open[path].report
        dirty = path in self._dirty
        if known is not None and not dirty and (before is None or (self._holds(before) and not (before.partial and whole))):
            return {path: known}
        self._parts.pop(path, None)
        self._dirty.discard(path)
        reused = None if whole or dirty else before
        try:
            results = {path: self._concluded(path, lambda sources, options: self._analysed(sources, options, reused))}
        except BaseException:  # overtaken: the next text is held against the same one
            if before is not None:
                self._parts[path] = before
            raise
        parts = [part for part in (before, self._parts.get(path)) if part is not None]
        others = {finding.span.file for part in parts for finding in part.findings} - {path}
        for other in sorted(others & self.open.keys() & self._parts.keys()):
            results[other] = self._concluded(other, lambda sources, options: self._joined(sources[0], options))
        return results

    def profile(self) -> Profile | None:
        """What findings cost in a recorded run, if `streamlint trace` has written so into the folder."""
        path = self.root / FILE
        written = path.stat().st_mtime_ns if path.is_file() else 0
        if written != self._profile[0]:
            try:
                self._profile = written, load(path) if written else None
            except StreamlintError:  # half written, or of another release: findings are shown without it
                self._profile = written, None
        return self._profile[1]

    def stale(self) -> tuple[str, ...]:
        """Open documents that were linted with another text of some file than it has now."""
        old = {path for path, part in self._parts.items() if not self._holds(part)}
        return tuple(sorted((old | self._dirty) & self.open.keys()))

    def _holds(self, part: Part) -> bool:
        return all(source.path not in self.open or self.open[source.path].text == source.text for source in part.sources)

    def _concluded(self, path: str, analyse: linter.Analyse) -> Report:
        document = self.open[path]
        found = self._wanted(path)
        report = Report() if found is None else linter.run_one(found, document.data, analyse)
        document.report, document.trial = report, None
        return report

    def is_partial(self, path: str) -> bool:
        """Whether some findings were kept from the text before."""
        return path in self._parts and self._parts[path].partial

    def _analysed(self, sources: list[Source], options: Options, reused: Part | None) -> Report:
        (source,) = sources
        near = self._near(source, options)
        self._parts[source.path] = self.memory.look(source.path, near, options, reused)
        return self._joined(source, options)

    def _joined(self, source: Source, options: Options) -> Report:
        """What the roots of all open documents say of one of them."""
        found: list[Finding] = []
        texts: dict[str, str] = {}
        for part in self._parts.values():
            if part.options == options and part.text_of(source.path) == source.text:
                found += [finding for finding in part.findings if finding.span.file == source.path]
                texts.update((other.path, other.text) for other in part.sources)
        problems = [problem for problem in self._parts[source.path].problems if problem.file == source.path]
        return Report(findings=sorted(winners(found), key=Finding.sort_key), problems=problems, texts=texts)

    def _near(self, source: Source, options: Options) -> list[Source]:
        """The sources that a document is linted among, as a run puts them together."""
        entries = self._all()
        if source.path not in entries:
            return [source]
        self._map = self._map or Map(entries)
        around = linter.sources_of((entry.found, entry.data) for entry in self._map.near(source.path))
        others = [other for other in around.get(options, ()) if other.path != source.path]
        return sorted([*others, source], key=lambda each: each.path)

    # Repairs ------------------------------------------------------------------------------------------------------------------

    def finding(self, path: str, fingerprint: str) -> Finding | None:
        """A finding of the last answer."""
        report = self.open[path].report if path in self.open else None
        return next((found for found in report.findings if found.fingerprint == fingerprint), None) if report else None

    def repaired(self, path: str, finding: Finding) -> Finding:
        """The finding with the fix that holds."""
        document, part = self.open[path], self._parts.get(path)
        if part is None:
            return finding
        if document.trial is None:
            document.trial = trial_of(document.text, self._found(path), self._relint(part))
        return replace(finding, fix=document.trial.propose(finding))

    def text_shown(self, path: str) -> str:
        """The text of a document as the editor shows it, in the rows of its program."""
        document = self.open[path]
        return "\n\n".join(sources_of(document.data, document.text)) if is_notebook(path) and document.text else document.text

    def changed(self, path: str, after: str) -> list[tuple[str, str]]:
        """The text of a document, and a new one, as the editor has them: a notebook cell by cell."""
        document = self.open[path]
        if not is_notebook(path):
            return [(document.text, after)]
        return list(zip(sources_of(document.data, document.text), sources_of(document.data, after), strict=True))

    def ignored(self, path: str, finding: Finding) -> str | None:
        """The text with a comment that hides the finding."""
        document = self.open[path]
        text, hidden = add_ignores(path, document.text, self._found(path).language, [finding])
        return text if hidden else None

    def fixed(self, path: str) -> tuple[str, int]:
        """The text that ``check --fix`` makes of an open document, and how many findings it mends."""
        before, part, mended = self.open[path], self._parts.get(path), 0
        try:
            for _ in range(MOST_PASSES):
                step = self._step(path)
                if not step.mended:
                    break
                mended += len(step.mended)
                self.put(path, _as_file(path, step.texts[path], self.open[path]), before.language)
            return self.open[path].text, mended
        finally:
            if mended:
                self.put(path, _as_file(path, before.text, before), before.language)
                self.open[path] = before
                if part is not None:
                    self._parts[path] = part

    def _step(self, path: str) -> Repairs:
        """The safe fixes of a document that hold together."""
        report = self.open[path].report or self.lint(path)[path]
        part = self._parts.get(path)
        if part is None:
            return Repairs()
        report = replace(report, findings=list(report.findings))
        report.trials = trials(report, {path: self._found(path)}, {path: self._relint(part)})
        return repairs(report, unsafe=False)

    def _relint(self, part: Part) -> Relint:
        relint = Relint(part.sources, part.options)
        relint.keep(part.parser)
        return relint

    # Files --------------------------------------------------------------------------------------------------------------------

    def _found(self, path: str) -> Found:
        found = self._wanted(path)
        assert found is not None
        return found

    def _wanted(self, path: str) -> Found | None:
        """The file, if a run in the folder would look at it."""
        absolute = Path(os.path.abspath(path))
        settings = self.resolver.of_file(absolute)
        language = language_of(path) or (self.open[path].language if path in self.open else None)
        if language is None:
            return None
        if not self.alone:
            if left_out(absolute, False, replace(settings, root=self.root)):
                return None
            if settings.include is not None and not any(matches(pattern, absolute) for pattern in settings.include):
                return None
        return Found(path, language, settings, given=self.alone)

    def _all(self) -> dict[str, Entry]:
        """The files of the folder that can matter, read when they are first asked for."""
        if self._entries is None:
            files = [] if self.alone else discover([self.root], self.resolver).files
            self._entries, names = {}, frozenset(found.path for found in files)
            for found in files:
                if found.path not in self.open:
                    self._read(found, names)
            for path, document in self.open.items():
                if (mine := self._wanted(path)) is not None:
                    self._enter(mine, document.data)
        return self._entries

    def _read(self, found: Found, others: Collection[str]) -> None:
        try:
            data = read_source(found.path)
        except Unreadable:
            return
        if not is_generated(data, found) and not is_port(found.path, data, others) and not speaks_hip_alone(data):
            self._enter(found, data)

    def _enter(self, found: Found, data: bytes) -> None:
        """Keep a file that can matter; of other C++ the name, for who includes it."""
        assert self._entries is not None
        language = found.language
        said = program_in(data).encode() if is_notebook(found.path) else data
        counts = found.path in self.open or relevant(language, found.settings.models)(said) or seam(language)(said)
        entry, known = Entry(found, data if counts else None), self._entries.pop(found.path, None)
        if counts or language == "cuda":
            self._entries[found.path] = entry
        if known is None or (language != "python" and (known.includes, known.opened) != (entry.includes, entry.opened)):
            self._map = None


def _opened(path: str, text: str, language: str) -> Open:
    """An open document of what the editor holds, which is the JSON of a notebook. Its bytes are in the encoding that it declares."""
    plain = text.encode("utf-8", "surrogatepass")
    if is_notebook(path):
        return Open(program_in(plain), language, plain)
    try:
        return Open(text, language, encode(text, plain, language, path))
    except (LookupError, UnicodeError):
        return Open(text, language, plain)


def _as_file(path: str, text: str, document: Open) -> str:
    """What the editor would hold with another text, of a notebook another program, in a document."""
    if not is_notebook(path):
        return text
    return encode(text, document.data, document.language, path).decode()
