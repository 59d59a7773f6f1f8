"""How far a run of ``check`` is: a line on a terminal from two seconds on, and what was left undone where the user interrupts it.

The stages of a run count their files here, in the process that the workers answer to. Nothing is counted while no command has begun to.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

from streamlint import TYPE_CHECKING
from streamlint.report.terminal import line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType
    from typing import Any

DELAY = 2.0  # seconds before the line appears
EVERY = 0.2  # seconds between two looks at it
ROOM = 40  # columns for a file's name
TAKEN = 64  # columns for what stands before it

_now: _Progress | None = None


@contextlib.contextmanager
def reporting(quiet: bool) -> Iterator[None]:
    """Count the files of what is done meanwhile; ``quiet`` shows no line, and says nothing on Ctrl-C."""
    global _now
    _now = mine = _Progress(not quiet and sys.stderr.isatty())
    try:
        with mine.looked_at():
            yield
    except KeyboardInterrupt:
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # it may come twice: by the terminal and by the process that watches
        if not quiet and (text := mine.undone()):
            print(f"streamlint: {text}", file=sys.stderr, flush=True)
        raise
    finally:
        _now = None


def expect(files: int) -> None:
    """As many files are to be analysed."""
    if _now is not None:
        _now.expected = files


def known(files: int) -> None:
    """As many of them need no analysis."""
    if _now is not None:
        _now.linted += files


def stage(name: str, files: int) -> None:
    """A stage begins, such as ``checking``, with as many files to go through; one without a name goes with the stage before it."""
    if _now is not None and name:
        _now.begin(name, files)


def at(file: str) -> None:
    """The work on a file begins."""
    if _now is not None:
        _now.file = file
        _now.look()


def done() -> None:
    """The work on a file of the stage is over."""
    if _now is not None:
        _now.count()


def over(files: Iterable[str], name: str, number: int) -> Iterator[str]:
    """The files of a stage, one after the other, each counted once the next is asked for."""
    stage(name, number)
    for file in files:
        at(file)
        yield file
        done()


def finish() -> None:
    """All files are through; what follows is printed."""
    if _now is not None:
        _now.finish()


def forget() -> None:
    """This process is a worker: another one counts."""
    global _now
    _now = None


class _Progress:
    """The counts of a run, and the line that shows them."""

    def __init__(self, shows: bool) -> None:
        self.expected = 0
        self.linted = 0
        self.file = ""
        self._stage = ""
        self._total = self._done = 0
        self._shows = shows
        self._from = time.monotonic() + DELAY
        self._next = self._from
        self._bar: Any = None
        self._over = False

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[None]:
        """Look at the counts now and then, also while one file takes long; the line is gone at the end."""
        alarmed = self._shows and hasattr(signal, "setitimer")
        before: Any = None
        if alarmed:
            try:
                before = signal.signal(signal.SIGALRM, self._alarmed)
                signal.setitimer(signal.ITIMER_REAL, DELAY, EVERY)
            except ValueError:  # not the main thread
                alarmed = False
        try:
            yield
        finally:
            if alarmed:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                signal.signal(signal.SIGALRM, before)
            self._hide()

    def _alarmed(self, number: int, frame: FrameType | None) -> None:
        self.look()

    def begin(self, name: str, files: int) -> None:
        self._over = False
        self._stage, self._total, self._done, self.file = name, files, 0, ""
        if name == "reading":
            self.expected = self.linted = 0

    def count(self) -> None:
        self._done += 1
        if self._stage == "checking":
            self.linted += 1
        self.look()

    def finish(self) -> None:
        self._over = True
        self._hide()

    def look(self) -> None:
        """Show the line anew, if it is time."""
        if not self._shows or self._over or not self._stage or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        try:
            self._show()
        except Exception:  # the line is a comfort: the next one may succeed, and a run does not end for it
            self._bar = None

    def _show(self) -> None:
        if self._bar is None:
            self._bar = _bar()
        self._bar.total, self._bar.n, self._bar.ncols = self._total, self._done, _columns()
        self._bar.set_description_str(self._stage, refresh=False)
        self._bar.set_postfix_str(_short(self.file, self._bar.ncols - TAKEN), refresh=False)
        self._bar.refresh()

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar.clear()
            self._bar.close()
            self._bar = None

    def undone(self) -> str:
        """What an interrupted run did and did not do; nothing where no file waited for it."""
        if self._over:
            return ""
        if not self._stage:
            return "interrupted; nothing is reported"
        if self._stage == "reading" or not self.expected:
            return f"interrupted while reading: {self._done} of {_files(self._total)} read, none linted; no finding is reported"
        if self._stage == "trying fixes":
            return f"interrupted while trying fixes: all {_files(self.expected)} linted, fixes tried in {self._done} of {self._total}"
        left = self.expected - self.linted
        return f"interrupted while {self._stage}: {self.linted} of {_files(self.expected)} linted, {left} not; no finding is reported"


def _files(number: int) -> str:
    return f"{number} file{'s' * (number != 1)}"


def _columns() -> int:
    """The width of the terminal, without its last column; a terminal may not know it."""
    try:
        wide = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        wide = 0
    return (wide or 80) - 1


def _short(path: str, room: int) -> str:
    """The end of a path, which says most, for a terminal."""
    text = line(path)
    room = min(max(room, 12), ROOM)
    return text if len(text) <= room else "..." + text[3 - room :]


def _bar() -> Any:
    import threading  # start-up: for terminals

    from tqdm import tqdm  # start-up: for terminals

    tqdm.set_lock(threading.RLock())  # its own may begin a process
    tqdm.monitor_interval = 0  # and a thread
    form = "{desc} {n_fmt} of {total_fmt} files |{bar:20}| {elapsed}{postfix}"
    # nrows: some terminals report no height, which would hide the line; delay: nothing is shown before there are counts
    return tqdm(file=sys.stderr, leave=False, bar_format=form, total=0, nrows=20, delay=3600)
