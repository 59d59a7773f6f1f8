"""A process beside a Dask worker: it holds the program of a run and answers for its files, until it is not asked any more."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import zlib
from typing import Any

from streamlint import guard, workers
from streamlint.analysis import Analysis
from streamlint.cache.units import Unit, Units
from streamlint.cluster.job import Answer, Job
from streamlint.engine import reader
from streamlint.incremental import Incremental
from streamlint.memory import freeze, seldom_collected
from streamlint.options import Source

IDLE_S = 20


class _Sent(Units):
    """What the client knows of the sources: no result is kept, and each waits until it is asked for."""

    store: Any = None

    def __init__(self, job: Job) -> None:
        self._job = job

    def load(self, source: Source, content: str) -> Unit | None:
        return self._job.units.get(source.path)

    def keep(self, source: Source, content: str, unit: Unit) -> None:
        pass

    def interface(self, native: str) -> dict[str, Any] | None:
        return self._job.interface

    def keep_interface(self, native: str, record: dict[str, Any]) -> None:
        pass

    def keep_paths(self, paths: list[str]) -> str:
        return self._job.paths


class Analyst:
    """The program of a job."""

    def __init__(self, job: Job) -> None:
        self._work = Incremental(job.sources, reader(job.sources, job.options), _Sent(job))
        self._analysis = Analysis(self._work.program, job.options)

    def answers(self, names: list[str]) -> dict[str, Answer | str]:
        """For each name its answer. They are found in a process that can die, and one after the other: a task has one thread."""
        self._work.program.files.load(names)
        check, native = self._work.check(self._analysis), self._work.native

        def answer(name: str) -> Answer | str:
            return Answer(*check(name), native)

        with seldom_collected():  # what is frozen is thawed behind it
            freeze()
            return dict(workers.alone(answer, names, instead=lambda name, why: why))


def main() -> None:
    """Serve: a job, then names in and answers out."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else is to be written among the answers
    job: Job = pickle.loads(zlib.decompress(pickle.load(questions)))
    with contextlib.suppress(OSError):  # without the tree, build files are not seen: the client notices
        os.chdir(job.folder)
    os.environ[guard.VARIABLE] = str(job.seconds)
    guard.timed()
    with seldom_collected():
        analyst = Analyst(job)
        while True:
            signal.alarm(IDLE_S)  # ends the process
            try:
                names = pickle.load(questions)
            except EOFError:
                return
            signal.alarm(0)
            pickle.dump(analyst.answers(names), answers)
            answers.flush()


if __name__ == "__main__":
    main()
