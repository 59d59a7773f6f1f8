"""A whole run: files found, read and screened, the engine asked, suppressions applied, findings selected and put in order."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.config.options import Options, Source
from streamlint.config.settings import Resolver, Settings
from streamlint.discovery import screening
from streamlint.discovery.files import Found, discover, left_out
from streamlint.discovery.hip_ports import has_original
from streamlint.discovery.triggers import seam
from streamlint.findings import Problem, Report
from streamlint.runner import progress
from streamlint.runner.texts import Texts
from streamlint.support import guard
from streamlint.support.errors import StreamlintError
from streamlint.support.lazy import lazy
from streamlint.support.memory import seldom_collected
from streamlint.support.paths import display_path
from streamlint.support.reading import Unreadable, decode, language_of, read_source, stat_of
from streamlint.support.records import field, record, replace
from streamlint.triage.filters import apply_filters, reported_once
from streamlint.triage.fingerprint import Statements

if TYPE_CHECKING:
    from typing import Any

    from streamlint.cache import runs
    from streamlint.cache.runs import Runs
    from streamlint.cache.store import Store
    from streamlint.discovery import seams
    from streamlint.discovery.seams import Seams
    from streamlint.runner import comments, engine, relint, repairs
    from streamlint.runner.cluster.client import Cluster
    from streamlint.runner.relint import Relint
    from streamlint.runner.shards import Share
else:
    (runs,) = lazy("streamlint.cache", "runs")
    (seams,) = lazy("streamlint.discovery", "seams")
    comments, engine, relint, repairs = lazy("streamlint.runner", "comments", "engine", "relint", "repairs")

Analyse = Callable[[list[Source], Options], Report]


def lint(paths: Sequence[str | Path] = (".",), settings: Settings | None = None) -> Report:
    """Lint files and folders.

    With ``settings`` they hold for every file; without, each file's nearest configuration is read, as on the command line.

    Raises StreamlintError: PathError for a path that does not exist, ConfigError for a wrong configuration.
    """
    return run(paths, Resolver(settings))


@record(slots=True)
class How:
    """How a run is done."""

    coverage: bool = False
    jobs: int = 1
    fixes: bool = False  # findings have the fix that holds
    trials: bool = True  # the report can apply its fixes
    store: Store | None = None  # files whose results it holds are not analysed
    instead: Mapping[str, bytes] = field(default_factory=dict)  # what some files are taken to contain
    cluster: Cluster | None = None  # its workers share the work
    share: Share | None = None  # this is a part of a run, or puts the parts of one together
    engine: Analyse | None = None  # another one than ours looks at the sources


def run(paths: Iterable[str | Path], resolver: Resolver, how: How | None = None) -> Report:
    """Lint files and folders under the settings that a resolver finds."""
    how = how or How()
    store = how.store
    try:
        return _run(paths, resolver, _Run(how))
    except StreamlintError:
        raise
    except Exception:
        if store is None or not store.served or how.share is not None:
            raise
        # What is kept fits its hash, and anybody may have written it: nothing of it is used, and a fault of ours is repeated.
        guard.at("")
        report = _run(paths, resolver, _Run(replace(how, store=None)))
        report.remarks.append(f"what is kept in {store.base} is no work of ours, and was not used; `streamlint clean` empties it")
        return report


def _run(paths: Iterable[str | Path], resolver: Resolver, work: _Run) -> Report:
    _forget_build_files()
    store, share = work.how.store, work.how.share
    with seldom_collected():
        found = work.discover(paths, resolver)
        if store is not None and share is None and work.is_known(store, found):
            return work.finish()
    with work.timed("read"):
        progress.stage("reading", len(found))
        for file in found:
            progress.at(file.path)
            work.read(file)
            progress.done()
    work.analyse()
    return work.finish()


def run_text(data: bytes, name: str, resolver: Resolver, coverage: bool = False, *, fixes: bool = False) -> Report:
    """Lint one source that is no file, such as standard input, under the settings of the path that it is named by."""
    work = _Run(How(coverage, fixes=fixes))
    _forget_build_files()
    path = Path(os.path.abspath(name))
    settings = resolver.of_file(path)
    file = Found(display_path(name), language_of(name) or "python", settings, given=True)
    if file.path in guard.lost:
        work._lose(file, guard.lost[file.path])
    elif not (settings.force_exclude and left_out(path, False, settings)):
        work.take(file, data)
    work.analyse()
    return work.finish()


def run_one(file: Found, data: bytes, analyse: Analyse) -> Report:
    """Lint one file with an engine of the caller's, who knows the files around it."""
    work = _Run(How(engine=analyse))
    work.take(file, data)
    joining = work.seams.joining
    work._sources, work._seams, work._passed = work._sources or joining, None, []
    work.analyse()
    return work.finish()


def sources_of(files: Iterable[tuple[Found, bytes]]) -> dict[Options, list[Source]]:
    """What a run of these files would analyse, by what decides the findings apart from them."""
    work = _Run()
    for file, data in files:
        work.take(file, data)
    work._join_seams()
    return work._sources


@record(slots=True)
class _Run:
    how: How = field(default_factory=How)
    runs: Runs | None = None
    report: Report = field(default_factory=lambda: Report(texts=Texts()))
    _relints: dict[str, Relint] = field(default_factory=dict)  # by file
    _statements: Statements | None = None
    _files: dict[str, Found] = field(default_factory=dict)
    _found: frozenset[str] = frozenset()
    _of_search: int = 0  # problems of looking for files
    _sources: dict[Options, list[Source]] = field(default_factory=dict)
    _options: dict[int, Options] = field(default_factory=dict)
    _commented: set[str] = field(default_factory=set)
    _seams: Seams | None = None
    _passed: list[Found] = field(default_factory=list)  # without a word that counts, until somebody asks for the seams

    @property
    def seams(self) -> Seams:
        """What may belong to the run though it names no CUDA."""
        if self._seams is None:
            self._seams = seams.Seams()
            for file in self._passed:
                self._seams.skip(file)
        return self._seams

    def discover(self, paths: Iterable[str | Path], resolver: Resolver) -> list[Found]:
        """The files of the run."""
        with self.timed("discover"):
            found = discover(paths, resolver)
        self._found = frozenset(file.path for file in found.files)
        self.report.problems += found.problems
        self._of_search = len(found.problems)
        return found.files

    def is_known(self, store: Store, found: list[Found]) -> bool:
        """Whether an earlier run has found all that this one would; then it is taken over."""
        with self.timed("cache"):
            self.runs = runs.Runs(store, found, "coverage" if self.how.coverage else "")
            unchanged = self.runs.unchanged()
            if unchanged:
                self.recall()
        return unchanged

    @contextlib.contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.report.timings[stage] = self.report.timings.get(stage, 0.0) + time.perf_counter() - start

    def read(self, file: Found) -> None:
        """Look at a file of the run, if it is not known to hold nothing, and keep it if it can hold a finding."""
        if file.path in guard.lost:
            self._lose(file, guard.lost[file.path])
            return
        known = self.runs.glance(file.path) if self.runs is not None else None
        if known is not None and known.flags & ~screening.PASSED_OVER == 0:
            self._screened(file, known.flags, None)
            return
        before = stat_of(file.path) if self.runs is not None else None
        try:
            data = self.how.instead[file.path] if file.path in self.how.instead else read_source(file.path)
        except Unreadable as error:
            self._lose(file, str(error))
            return
        if known is not None and self.runs is not None and self.runs.is_what(known, data):
            self._screened(file, known.flags, data)
            return
        flags = screening.flags_of(data, file)
        if self.runs is not None:
            self.runs.learn(file.path, data, flags, before)
        self._screened(file, flags, data)

    def _lose(self, file: Found, why: str) -> None:
        """Count a file of which nothing is known but its name."""
        self.report.files += 1
        self._files[file.path] = file
        self.report.problems.append(Problem(file.path, why, lost=True))
        if self.runs is not None:
            self.runs.whole = False

    def _screened(self, file: Found, flags: int, data: bytes | None) -> None:
        if not self._is_left_out(file, flags):
            self.take(file, data, flags)

    def _is_left_out(self, file: Found, flags: int) -> bool:
        """Whether a file was made by a tool from another one that is there; what the user names is read all the same."""
        if file.given:
            return False
        generated = flags & screening.HIPIFIED or (flags & screening.CYTHONIZED and file.settings.default_excludes)
        return bool(generated or (flags & screening.HIP and has_original(file.path, self._found)))

    def take(self, file: Found, data: bytes | None, flags: int | None = None) -> None:
        """Decode a file, and keep it if it can hold a finding. A file without data is known to hold nothing."""
        self.report.files += 1
        self._files[file.path] = file
        flags = screening.flags_of(data or b"", file) if flags is None else flags
        mentions, joins, commented = (bool(flags & flag) for flag in (screening.MENTIONS, screening.JOINS, screening.COMMENTED))
        if not (mentions or joins):
            self._passed.append(file) if self._seams is None else self._seams.skip(file)
        if data is None or not (mentions or joins or commented or flags & screening.ODD):
            return
        try:
            text, warning = decode(data, file.language, file.path)
        except Unreadable as error:
            self.report.problems.append(Problem(file.path, str(error), lost=True))
            return
        if commented:
            self._commented.add(file.path)
            self.report.texts[file.path] = text
        if joins:
            self.seams.join(self._options_of(file.settings), Source(file.path, text, file.language))
        if mentions:
            self.report.relevant += 1
            self.report.texts[file.path] = text
            options = self._options_of(file.settings)
            self._sources.setdefault(options, []).append(self._analysable(Source(file.path, text, file.language)))
            self.report.problems += [Problem(file.path, warning)] if warning else []

    def _analysable(self, source: Source) -> Source:
        """A source as the engine reads it: its whole text is not held a second time. Others than ours are given all of it."""
        if self.how.engine is not None or self.how.share is not None:
            return source
        return comments.strip_comments(source)

    def recall(self) -> None:
        """Take what the last run over the same files found; what comments and baselines say of it is asked anew."""
        assert self.runs is not None
        self._statements = Statements(self.report.texts, self.runs.recall(self.report))
        for file in self.runs.found:
            flags = self.runs.screens[file.path].flags
            if not self._is_left_out(file, flags):
                self._files[file.path] = file
                if flags & screening.COMMENTED:
                    self._commented.add(file.path)
        lost = {problem.file for problem in self.report.problems if problem.lost}
        for path in sorted({finding.span.file for finding in self.report.findings} | lost | self._commented):
            self.report.texts[path] = _text(path)

    def _options_of(self, settings: Settings) -> Options:
        if id(settings) not in self._options:
            self._options[id(settings)] = settings.options(self.how.coverage)
        return self._options[id(settings)]

    def analyse(self) -> None:
        """What the engine finds in the files that were kept."""
        with self.timed("join"):
            self._join_seams()
        progress.expect(sum(map(len, self._sources.values())))
        if self.how.share is not None:
            lost = [Source(path, _text(path), language_of(path) or "cuda") for path in sorted(guard.lost) if path in self._found]
            self.how.share.begin(self._files.values(), [*(source for group in self._sources.values() for source in group), *lost])
        with self.timed("analyse"):
            for options, sources in self._sources.items():
                self.report.add(self._analysed(sources, options))
        self.report.problems = reported_once(self.report.problems)
        if self.runs is not None:
            with self.timed("cache"):
                self._statements = Statements(self.report.texts)
                self.runs.keep(self.report, self.report.problems[self._of_search :], self._statements)

    def finish(self) -> Report:
        """Suppressions, the selection of rules, baselines and fixes."""
        settings = {id(file.settings): file.settings for file in self._files.values()}
        self.report.models = list({source: (source, table) for each in settings.values() for source, table in each.models}.values())
        with self.timed("suppress"):
            apply_filters(self.report, self._files, self._commented, self._statements or Statements(self.report.texts))
        if self.how.fixes:
            with self.timed("fixes"):
                self._mend()
        self.report.problems.sort(key=lambda problem: (problem.file, problem.row, problem.column, problem.message))
        self._forget_texts()
        return self.report

    def _mend(self) -> None:
        """Find the fixes that hold, unless they are kept."""
        if not self.report.findings:
            return
        kept = self.runs.fixes() if self.runs is not None and not self.how.trials else {}
        names: list[str] = []
        if self.runs is not None:
            names = list(map(self.runs.name_of, self.report.findings))
        if names and set(names) <= kept.keys():
            self.report.findings = [replace(f, fix=kept[name]) for f, name in zip(self.report.findings, names, strict=True)]
            return
        if self.report.findings and not self._relints and self.runs is not None:
            self._read_for_fixes()
        problems_before = len(self.report.problems)
        self.report.trials = repairs.trials(self.report, self._files, self._relints, self.how.jobs, self.how.trials)
        if names and self.runs is not None and problems_before == len(self.report.problems):
            self.runs.keep_fixes({name: finding.fix for name, finding in zip(names, self.report.findings, strict=True)})

    def _read_for_fixes(self) -> None:
        """The program that fixes are tried in, where the findings were kept."""
        assert self.runs is not None
        rerun = _Run(How(self.how.coverage, self.how.jobs, fixes=True, store=self.how.store, cluster=self.how.cluster))
        rerun._found = self._found
        for file in self.runs.found:
            rerun.read(file)
        rerun.analyse()
        self._relints = rerun._relints
        self.report.texts.update(rerun.report.texts)

    def _analysed(self, sources: list[Source], options: Options) -> Report:
        if self.how.engine is not None:
            return self.how.engine(sources, options)
        keep = None
        if self.how.fixes:
            rerun = relint.Relint(sources, options)
            self._relints.update((source.path, rerun) for source in sources)
            keep = rerun.keep
        if self.how.share is not None:
            return self.how.share.analyse(sources, options, self.how.jobs, keep, self.how.store)
        said: dict[str, Any] = {"store": self.how.store, "cluster": self.how.cluster}
        return engine.analyse(sources, options, self.how.jobs, keep, **{name: one for name, one in said.items() if one is not None})

    def _join_seams(self) -> None:
        """Bindings and Cython that name no CUDA are read where C++ beside them does."""
        for options, sources in self._sources.items():
            joining = list(self.seams.completed(options, sources, lambda source: seam(source.language)(source.text.encode())))
            if joining:
                self.report.relevant += len(joining)
                self.report.texts.update((source.path, source.text) for source in joining)
                self._sources[options] = sorted([*sources, *map(self._analysable, joining)], key=lambda source: source.path)
        self._seams, self._passed = None, []  # their texts are needed no more

    def _forget_texts(self) -> None:
        """Keep only the texts that findings show, and read those that the engine did not hand over."""
        shown_ones = [*self.report.findings, *self.report.baselined]
        spans = [span for finding in shown_ones for span in (finding.span, *(step.span for step in finding.trail))]
        wanted = {span.file for span in spans}
        texts = self.report.texts
        self.report.texts = {file: texts[file] if file in texts else self._text_of(file) for file in sorted(wanted)}

    def _text_of(self, file: str) -> str:
        """The text of a file of the run: a record may name any file of this machine, which nobody is shown."""
        return _text(file) if file in self._found or file in self._files else ""


def _forget_build_files() -> None:
    """Forget the build files that this process has read."""
    if (build_files := sys.modules.get("streamlint.build_files")) is not None:
        build_files.forget()


def _text(file: str) -> str:
    try:
        return decode(read_source(file), language_of(file) or "cuda", file)[0]
    except Unreadable:
        return ""
