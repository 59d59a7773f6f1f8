"""A process beside a Dask worker: it holds the program of a run and answers for its rules, until it is not asked any more."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import zlib

from streamlint.findings import Part
from streamlint.runner import workers
from streamlint.runner.cluster.job import Answer, Job
from streamlint.runner.engine import looked_for
from streamlint.runner.parsing import Parser
from streamlint.support import guard
from streamlint.support.memory import freeze, seldom_collected
from streamlint.support.records import replace

IDLE_S = 20


class Analyst:
    """The program of a job."""

    def __init__(self, job: Job) -> None:
        self._parser, self._options = Parser.received(job.sources, job.parsed), job.options

    def answers(self, names: list[str]) -> dict[str, Answer | str]:
        """What rules find, under the name of the first; where their process dies, each is asked alone."""
        found = self._answer(names)
        if isinstance(found, str) and len(names) > 1:
            return {name: self._answer([name]) for name in names}
        return {name: Part() if number else found for number, name in enumerate(names)}

    def _answer(self, names: list[str]) -> Answer | str:
        """What rules find in a process that can die: a task has one thread."""
        options = replace(self._options, codes=frozenset(names))

        def answer(name: str) -> Answer | str:
            return looked_for(self._parser, options)

        with seldom_collected():  # what is frozen is thawed behind it
            freeze()
            by_name: dict[str, Answer | str] = dict(workers.alone(answer, [" ".join(names)], instead=lambda name, why: why))
            return next(iter(by_name.values()))


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
