"""The child process that lints: jobs come in, answers go out, until the pipe is closed."""

from __future__ import annotations

import collections
import contextlib
import os
import pickle
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from streamlint import build_files
from streamlint.config.settings import Resolver, Settings, load
from streamlint.discovery import files
from streamlint.fix.edits import Edited
from streamlint.server import records, warm
from streamlint.server.jobs import Answer, FixAll, Job, Lint, Linted, Repair, Repairs, Setup, Text, Touched
from streamlint.server.memory import Memory, tidy
from streamlint.server.project import Project
from streamlint.support.errors import StreamlintError
from streamlint.support.reading import is_notebook

PAUSE = 0.5  # seconds without a job before it warms up further
QUIET = 2.0  # seconds without a job before rubbish is collected


class Overtaken(BaseException):
    """What is asked for is no longer wanted. No fault of a root: not to be caught as one."""


class Inbox:
    """Jobs in their order, read ahead by a thread so that work can see what has come meanwhile."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe, self._jobs = pipe, collections.deque[tuple[int, Job]]()
        self._ready = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def next(self, patience: float | None) -> tuple[int, Job] | None:
        """The next job, or None if there is none for a while."""
        with self._ready:
            self._ready.wait_for(lambda: self._jobs, patience)
            return self._jobs.popleft() if self._jobs else None

    def breathe(self) -> None:
        """Raise Overtaken if a document has changed, or the settings."""
        if any(isinstance(job, (Text, Setup)) for _, job in list(self._jobs)):
            raise Overtaken

    def _listen(self) -> None:
        while True:
            try:
                job = pickle.load(self._pipe)
            except (EOFError, OSError, pickle.UnpicklingError):
                os._exit(0)  # the server is gone
            with self._ready:
                self._jobs.append(job)
                self._ready.notify()


@dataclass(frozen=True, slots=True)
class Home:
    """Where a file is linted: a folder of the workspace, or for a file in none of them its own one, without its neighbours."""

    key: str
    folder: str
    alone: bool

    def inside(self, name: str) -> str:
        """A file's path as a run in the folder shows it."""
        return os.path.relpath(name, self.folder).replace(os.sep, "/")

    def outside(self, path: str) -> str:
        """The way back: the client's own spelling of the folder, which may lead through links."""
        here = os.getcwd()
        below = os.path.relpath(path, here) if os.path.isabs(path) and path.startswith(here + os.sep) else path
        return os.path.normpath(os.path.join(self.folder, below))


class Worker:
    """The folders of the workspace, and what is known of them."""

    def __init__(self, breathe: Callable[[], None]) -> None:
        self._setup = Setup(())
        self._breathe = breathe
        self._memories: dict[str, Memory] = {}  # by folder: what was lowered outlives a change of the settings
        self._projects: dict[str, Project] = {}
        self._open: dict[str, Text] = {}
        self._here = ""

    def do(self, job: Job) -> Any:
        """A job's answer. Raises StreamlintError for a wrong configuration, Overtaken, and whatever goes wrong."""
        match job:
            case Setup():
                self._setup = job
                self._anew()
            case Touched():
                return self._touched(job)
            case Text():
                return self._put(job)
            case Lint(path=name) | Repairs(path=name) | FixAll(path=name) if name in self._open:
                home = self._home(name)
                project, path = self._project(home), home.inside(name)
                if isinstance(job, Lint):
                    return self._lint(home, project, path, job.whole)
                if isinstance(job, Repairs):
                    return [self._repairs(project, path, fingerprint) for fingerprint in job.fingerprints]
                return self._fix_all(project, path)
        return None

    def _lint(self, home: Home, project: Project, path: str, whole: bool) -> Linted:
        encoding, profile = self._setup.encoding, project.profile()
        shown = {
            home.outside(other): records.reported(report, project.text_shown(other), encoding, home.outside, profile)
            for other, report in project.lint(path, whole).items()
        }
        return Linted(shown, self._stale(home), project.is_partial(path))

    def _repairs(self, project: Project, path: str, fingerprint: str) -> list[Repair]:
        finding = project.finding(path, fingerprint)
        if finding is None:
            return []
        text, encoding, found = project.open[path].text, self._setup.encoding, []
        fix = project.repaired(path, finding).fix
        if fix is not None and fix.applicability != "display":
            if is_notebook(path):
                found.append(records.change(fix.message, fix.applicability, project.changed(path, Edited(text, fix.edits).text), encoding))
            else:
                found.append(records.repair_of(fix, text, encoding))
        if (hidden := project.ignored(path, finding)) is not None:
            found.append(records.change(f"suppress {finding.code} with a comment", "ignore", project.changed(path, hidden), encoding))
        return found

    def _fix_all(self, project: Project, path: str) -> Repair | None:
        fixed, mended = project.fixed(path)
        if not mended:
            return None
        noun = "finding" if mended == 1 else "findings"
        return records.change(
            f"fix {mended} {noun} that streamlint can fix safely", "safe", project.changed(path, fixed), self._setup.encoding
        )

    # Folders ------------------------------------------------------------------------------------------------------------------

    def _anew(self) -> None:
        """Reread the configuration and the folders."""
        files.forget()
        build_files.forget()
        self._projects.clear()

    def _touched(self, job: Touched) -> tuple[str, ...]:
        """The open documents to re-lint."""
        if job.settings:
            self._anew()
            return tuple(self._open)
        stale: dict[str, None] = {}
        for name in job.paths:
            home = self._home(name)
            if home.key in self._projects:
                self._project(home).touch(home.inside(name))
                stale.update(dict.fromkeys(self._stale(home)))
        return tuple(stale)

    def _stale(self, home: Home) -> tuple[str, ...]:
        return tuple(home.outside(path) for path in self._projects[home.key].stale())

    def _put(self, job: Text) -> tuple[str, ...]:
        """The other open documents to re-lint."""
        home = self._home(job.path)
        if job.text is None:
            self._open.pop(job.path, None)
        else:
            self._open[job.path] = job
        self._project(home).put(home.inside(job.path), job.text, job.language)
        stale = self._stale(home)
        if home.alone and job.text is None:
            del self._projects[home.key]
        return stale

    def _home(self, name: str) -> Home:
        around = [folder for folder in self._setup.folders if Path(name).is_relative_to(folder)]
        if around:
            folder = max(around, key=len)
            return Home(folder, folder, False)
        return Home(name, os.path.dirname(name), True)

    def _project(self, home: Home) -> Project:
        """The project of a home, which becomes the current folder: findings, patterns and baselines name files from there."""
        if home.folder != self._here:
            os.chdir(home.folder if os.path.isdir(home.folder) else os.path.abspath(os.sep))
            build_files.forget()  # it knows files by these names
            self._here = home.folder
        if home.key not in self._projects:
            memory = self._memories.setdefault(home.folder, Memory(self._breathe))
            project = self._projects[home.key] = Project(Path.cwd(), self._resolver(), memory, home.alone)
            for name, text in self._open.items():
                if self._home(name) == home:
                    project.put(home.inside(name), text.text, text.language)
        return self._projects[home.key]

    def _resolver(self) -> Resolver:
        setup = self._setup
        fixed = load(Path(os.path.abspath(setup.config))) if setup.config else Settings() if setup.isolated else None
        return Resolver(fixed, setup.tables, default_excludes=setup.default_excludes)


def main() -> None:
    """Serve until the pipe is closed. What anybody prints goes to stderr: stdout carries answers."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    inbox = Inbox(os.fdopen(os.dup(0), "rb"))
    worker, idle, steps, patience = Worker(inbox.breathe), True, warm.steps(), 0.0
    while True:
        next_one = inbox.next(patience)
        if next_one is None and (step := next(steps, None)) is not None:
            with contextlib.suppress(Exception):  # what fails here fails as well where somebody asks for it
                step()
            patience = PAUSE
            continue
        if next_one is None:
            next_one = inbox.next(None if idle else QUIET)
        if next_one is None:
            tidy()
            idle = True
            continue
        idle = False
        number, job = next_one
        try:
            answer = Answer(number, "done", worker.do(job))
        except Overtaken:
            answer = Answer(number, "overtaken")
        except StreamlintError as error:
            answer = Answer(number, "refused", str(error))
        except Exception:
            answer = Answer(number, "failed", traceback.format_exc())
        pickle.dump(answer, answers)
        answers.flush()
