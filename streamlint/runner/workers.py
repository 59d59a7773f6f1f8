"""The same work for many names, shared between processes. A process that dies loses the name that it worked on, and no other."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from streamlint.runner import progress
from streamlint.support import guard

if TYPE_CHECKING:
    import multiprocessing  # start-up: one process
    from multiprocessing.connection import Connection

T = TypeVar("T")
FEWEST = 8  # below this a second process costs more than it saves


def shared(
    work: Callable[[str], T],
    names: Sequence[str],
    jobs: int,
    size: Callable[[str], int] = len,
    *,
    instead: Callable[[str, str], T],
    fewest: int = FEWEST,
    stage: str = "",
) -> Iterator[T]:
    """``work`` for each name, in order, in up to ``jobs`` processes that are forked from this one with all that it holds."""
    done = dict(as_done(work, names, jobs, size, instead=instead, fewest=fewest, stage=stage))
    yield from (done[name] for name in names)


def as_done(
    work: Callable[[str], T],
    names: Sequence[str],
    jobs: int,
    size: Callable[[str], int] = len,
    *,
    instead: Callable[[str, str], T],
    fewest: int = FEWEST,
    stage: str = "",
    each_anew: bool = False,
) -> Iterator[tuple[str, T]]:
    """Each name with what ``work`` gives for it, as it is done.

    Fewer names than ``fewest`` are worked on here. What is largest by ``size`` is begun first, so that no process is left with a long one
    at the end. ``instead`` is asked where a process ended before it answered: it gets the name, and how the process ended.
    ``stage`` names the work for those who watch it. ``each_anew``: one process for each name, also with one job: its memory goes with it.
    """
    if (jobs < 2 and not each_anew) or len(names) < fewest or not hasattr(os, "fork"):
        yield from ((name, work(name)) for name in progress.over(names, stage, len(names)))
        return
    progress.stage(stage, len(names))
    yield from _Pool(work, sorted(names, key=size), min(jobs, len(names)), instead, each_anew).run()


def alone(work: Callable[[str], T], names: Sequence[str], *, instead: Callable[[str, str], T]) -> Iterator[tuple[str, T]]:
    """The same in one process beside this one, which outlives it."""
    yield from _Pool(work, list(names)[::-1], min(1, len(names)), instead).run()


class _Pool:
    def __init__(self, work: Callable[[str], T], names: list[str], jobs: int, instead: Callable[[str, str], T], anew: bool = False) -> None:
        import multiprocessing  # start-up: one process
        from multiprocessing.connection import wait  # start-up: the same

        self._work, self._left, self._jobs, self._instead, self._wait = work, names, jobs, instead, wait
        self._anew = anew
        self._fork = multiprocessing.get_context("fork")
        self._busy: dict[Connection, tuple[multiprocessing.process.BaseProcess, str]] = {}
        self._done: list[tuple[str, object]] = []

    def run(self) -> Iterator[tuple[str, T]]:
        """The answers with their names, as they come."""
        with guard.ending_first(self._kill):
            try:
                while self._left and len(self._busy) < self._jobs and self._start():
                    pass
                while self._busy:
                    for ready in self._wait(list(self._busy)):
                        self._hear(ready)  # type: ignore[arg-type]
                        for answer in self._done:
                            yield answer  # type: ignore[misc]
                            progress.done()
                        self._done.clear()
                while self._left:  # no process could be begun
                    name = self._left.pop()
                    progress.at(name)
                    yield name, self._work(name)  # type: ignore[misc]
                    progress.done()
            finally:
                self._kill()
                for process, _ in self._busy.values():
                    process.join()

    def _kill(self) -> None:
        for process, _ in list(self._busy.values()):
            process.kill()

    def _start(self) -> bool:
        """Begin a process; False where the system allows no more of them, or no more open files."""
        try:
            ours, theirs = self._fork.Pipe()
        except OSError:
            return False
        with guard.held_back() as held:
            process = self._fork.Process(target=_serve, args=(theirs, self._work, [ours, *self._busy], held), daemon=True)
            try:
                process.start()
            except OSError:
                ours.close()
                return False
            finally:
                theirs.close()
            self._give(ours, process)
        return True

    def _give(self, connection: Connection, process: multiprocessing.process.BaseProcess) -> None:
        name = self._left.pop()
        self._busy[connection] = process, name
        progress.at(name)
        with contextlib.suppress(OSError):  # it has died: that is heard next
            connection.send(name)

    def _hear(self, connection: Connection) -> None:
        process, name = self._busy.pop(connection)
        try:
            answer = connection.recv()
        except (EOFError, OSError):
            process.join()
            connection.close()
            code = process.exitcode or 0
            why = guard.reason(-code) if code < 0 else f"left out: a worker ended with status {code}"
            self._done.append((name, self._instead(name, why)))
            if self._left:
                self._start()
            return
        if isinstance(answer, _Fault):
            raise answer.error
        self._done.append((name, answer))
        if self._busy:
            progress.at(next(iter(self._busy.values()))[1])  # the one that has taken longest
        if self._left and not self._anew:
            self._give(connection, process)
            return
        connection.close()  # which ends the worker
        process.join()
        if self._left:
            self._start()


class _Fault:
    """What a worker raised."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _serve(connection: Connection, work: Callable[[str], object], foreign: list[Connection], held: set[int]) -> None:
    """A worker: a name in, an answer out, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle: it ends its workers
    for number in guard.FATAL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, held)
    for other in foreign:
        other.close()  # else a sibling would hold the pipe open that shows its death
    guard.in_worker()
    progress.forget()
    while True:
        try:
            name = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = work(name)
        except Exception as error:
            answer = _Fault(error)
        guard.at("")
        connection.send(answer)
