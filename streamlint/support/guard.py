"""Runs that outlive their input: a file on which the linter dies, or that takes too long, costs itself and not the run.

The command line runs in a child process. The child notes which file it looks at, on a page of memory that both share, and has an alarm for
each file that ends it. If it dies, the parent restarts it and has that file left out. Native parsers overflow their stacks and run for
hours on a few kilobytes that are made for it; no handler in the same process helps there. Who uses the library is not watched.

No process outlives those that it works for: what ends a process ends first what it began, and a child whose parent is gone ends.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import time

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    import mmap  # start-up: for a run with a child
    from collections.abc import Callable, Iterator

SECONDS = 120.0  # of processor time that one step of the work on one file may take
VARIABLE = "STREAMLINT_FILE_SECONDS"
MOST_LOST = 10  # files that a run may lose
_ROOM = 1 << 14
FATAL = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_FORWARDED = (signal.SIGINT, *FATAL)

lost: dict[str, str] = {}  # by file as findings show it: why it is left out
_page: mmap.mmap | None = None
_clock = False  # whether this process may be ended by an alarm
_task = ""  # the work on many files that is being done
_end = 0.0  # the processor time of this process at which that must be over


def supervised(work: Callable[[], int]) -> int:
    """The exit code of ``work``, which is done in a child, as often as files have to be left out."""
    if not (hasattr(os, "fork") and hasattr(signal, "setitimer")):
        return work()
    global _page
    import mmap  # start-up: for a run with a child

    _page = mmap.mmap(-1, _ROOM)
    while True:
        status = _in_child(work)
        if status is None:
            return work()
        if not os.WIFSIGNALED(status):
            return os.waitstatus_to_exitcode(status)
        _end_alike(os.WTERMSIG(status))
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")  # its progress line, if it showed one
        file, why = _noted(), reason(os.WTERMSIG(status))
        if not file or file in lost or len(lost) >= MOST_LOST:
            print(f"streamlint: ended by {signal_name(os.WTERMSIG(status))}, nothing is known about the code", file=sys.stderr)
            return 2
        lost[file] = why


def at(file: str) -> None:
    """Note that the work on a file begins (none: that it is over), and begin to count its time.

    Within a `task`, what is over leads back to that.
    """
    name = file or _task
    if _page is not None:
        data = os.fsencode(name)[: _ROOM - 4]
        _page[:4] = len(data).to_bytes(4, "little")
        _page[4 : 4 + len(data)] = data
    if _clock:
        most = [seconds()] if file else []
        if _task:
            most.append(_end - time.process_time())
            if most[-1] <= 0.0:
                os.kill(os.getpid(), signal.SIGPROF)
        signal.setitimer(signal.ITIMER_PROF, min(most, default=0.0))


@contextlib.contextmanager
def task(name: str, most: float) -> Iterator[None]:
    """Work on many files in here, which may take ``most`` seconds of processor time."""
    global _task, _end
    before = _task, _end
    _task, _end = name, time.process_time() + most
    try:
        at("")
        yield
    finally:
        _task, _end = before
        at("")


def in_worker() -> None:
    """This process is a worker of a watched run: its parent sees its death, and knows what it looks at."""
    global _page
    _page = None


@contextlib.contextmanager
def ending_first(end: Callable[[], None]) -> Iterator[None]:
    """What ends this process meanwhile does this first: what it began would go on with what it is at."""
    import threading  # start-up: for workers

    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ended(number: int, _: object) -> None:
        end()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    numbers = [number for number in FATAL if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, ended)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def held_back() -> Iterator[set[int]]:
    """No signal ends this process while it begins another, which is then known, and listens; gives what was held back before."""
    before: set[int] = set(signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED))
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def timed() -> None:
    """This process may be ended by an alarm and by its memory: somebody else sees its death."""
    global _clock
    _clock = True
    _bound_memory()


def seconds() -> float:
    """What a file may take."""
    try:
        return max(float(os.environ.get(VARIABLE, "")), 0.01)
    except ValueError:
        return SECONDS


def reason(number: int) -> str:
    """Why a file is left out on which a process was ended by a signal."""
    if number == getattr(signal, "SIGPROF", None):
        return f"left out: it takes more than {seconds():g} s"
    return f"left out: the linter was ended by {signal_name(number)} while it looked at it"


def _in_child(work: Callable[[], int]) -> int | None:
    """How the child ended; None where no more processes may be begun."""
    at("")
    sys.stdout.flush()
    sys.stderr.flush()
    ours, theirs = _pipe()
    parent, handlers = os.getpid(), {}
    try:
        with held_back() as before:
            try:
                child = os.fork()
            except OSError:
                return None
            if child == 0:
                if theirs is not None:
                    os.close(theirs)
                _be_child(work, before, parent, ours)
            handlers = {number: signal.signal(number, lambda number, _: _forward(child, number)) for number in _FORWARDED}
        return os.waitpid(child, 0)[1]
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for end in (ours, theirs):
            if end is not None:
                os.close(end)


def _pipe() -> tuple[int | None, int | None]:
    """Its second end is held by this process alone, so that the other end shows its death."""
    try:
        return os.pipe()
    except OSError:  # no more files may be open
        return None, None


def _be_child(work: Callable[[], int], held: set[int], parent: int, pipe: int | None) -> None:
    code = 2
    try:
        _end_with(parent, pipe)
        timed()
        gc.disable()  # what a run makes lives until its end, and this process ends with it
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        code = work()
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 2
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except BaseException:
        import traceback  # start-up: for faults alone

        traceback.print_exc()
    finally:
        os._exit(code)  # no destructors: trees are freed faster by the system


def _end_with(parent: int, pipe: int | None) -> None:
    """This process ends when its parent does, wherever it is: it would watch, or wait for its input, for ever."""

    def heard(number: int, _: object) -> None:
        if os.getppid() != parent or _is_over(pipe):
            os.kill(os.getpid(), signal.SIGTERM)

    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl  # platform: POSIX

        if pipe is not None:
            if sys.platform == "linux":  # the signal that ends it: a handler in Python is not run while C reads on
                fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGTERM)
            else:
                signal.signal(signal.SIGIO, heard)
            fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    heard(0, None)  # it may have gone before


def _is_over(pipe: int | None) -> bool:
    """Whether nobody holds the other end: a process that dies closes its files before its children have another parent."""
    try:
        return pipe is not None and not os.read(pipe, 1)
    except OSError:  # nothing to read
        return False


def _bound_memory() -> None:
    """No more than the machine has: an allocation fails, and costs a file, before the machine stands still."""
    try:
        import resource  # platform: POSIX

        have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if soft == resource.RLIM_INFINITY and have > 0:
            resource.setrlimit(resource.RLIMIT_AS, (have if hard == resource.RLIM_INFINITY else min(have, hard), hard))
    except (ImportError, OSError, ValueError):
        pass


def _end_alike(number: int) -> None:
    """A run that got the signal to end has ended, whatever it looked at."""
    if number in _FORWARDED or signal_name(number) == "SIGPIPE":
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _forward(child: int, number: int) -> None:
    """What is sent to the parent alone is meant for both; Ctrl-C in a terminal reaches both by itself, and once is enough."""
    if number == signal.SIGINT:
        time.sleep(0.3)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def _noted() -> str:
    assert _page is not None
    return os.fsdecode(_page[4 : 4 + int.from_bytes(_page[:4], "little")])


def signal_name(number: int) -> str:
    """What a signal is called."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
