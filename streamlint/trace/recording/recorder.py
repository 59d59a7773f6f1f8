"""A recording in progress: CUPTI on one side, the file on the other, a thread between them."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time

from streamlint import TYPE_CHECKING, __version__
from streamlint.support.errors import StreamlintError
from streamlint.trace.recording import form, layouts, sessions
from streamlint.trace.recording.cupti import DRIVER_CALLS, RUNTIME_CALLS, gpu_name, open_cupti, takes_time
from streamlint.trace.recording.native import NativeTaps, compiled
from streamlint.trace.recording.output import Output
from streamlint.trace.recording.parts import Parts
from streamlint.trace.recording.stacks import Stacks
from streamlint.trace.recording.taps import PythonTaps

if TYPE_CHECKING:
    import io

    from streamlint.trace.recording.cupti import Cupti
    from streamlint.trace.recording.sessions import Session

FLUSH = 0.8  # seconds after which CUPTI is asked for what is finished, and all is written; earlier where much was collected
_STAYS = "CUPTI could not leave the program between the parts (it needs CUDA 12.6 and a C compiler): launches were slow there, too"
_TOGETHER = 8  # buffers of records in one block
_DEEPEST = 128  # characters of a thread's name


class Recorder:
    """Records this process into a file, from :meth:`start` to :meth:`stop`.

    A forked child records nothing: it has neither the thread nor a usable copy of CUPTI.
    """

    def __init__(self, output: str, cupti: Cupti, root: str = "", session: Session | None = None, share: float = 1.0) -> None:
        self.output = os.path.abspath(output)
        self.session = session or sessions.own()
        self.stacks = Stacks(root)
        self.taps = taps_for(self.stacks, cupti)
        self.process = os.getpid()
        self._cupti = cupti
        self._file: io.FileIO | None = None
        self._rows: list[list[object]] = []
        self._threads: dict[int, str] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="streamlint recorder", daemon=True)
        self._flushed = time.monotonic()
        self._running = False
        self._rank: int | None = None
        self._names: dict[int, dict[int, str]] = {}
        self._parts = Parts(share)
        self._stays = False  # CUPTI did not leave at the end of a part

    def start(self) -> None:
        """Begin. Raises StreamlintError where CUPTI refuses or is in use, and where the file cannot be written."""
        cupti = self._cupti
        self._names = {domain: cupti.names(domain) for domain in (DRIVER_CALLS, RUNTIME_CALLS)}
        cupti.subscribe(self.taps.called)
        try:
            self._begin()
        except OSError as error:
            cupti.close()
            raise StreamlintError(f"{self.output}: {error.strerror}") from error
        except BaseException:
            cupti.close()
            raise
        self._tell()
        self._rows += [["names", domain, named] for domain, named in self._names.items()]
        self._rows += [["size", kind, size] for kind, size in layouts.KEPT.items()]
        os.register_at_fork(after_in_child=self._forked)
        self._running = True
        self._parts.begin()
        self._thread.start()

    def _tell(self) -> None:
        """Have the calls called back that are kept."""
        for domain, named in self._names.items():
            for number, name in named.items():
                stack = self.taps.takes_stack(name)
                if stack or (self.taps.records_calls and takes_time(name)):
                    self.taps.asks(domain, number, name, stack=stack, per_thread=(domain, number) in self._cupti.per_thread)
                    self._cupti.tell(domain, number)

    def _record(self) -> None:
        """Have CUPTI make records."""
        self._cupti.call("cuptiActivityRegisterCallbacks", self.taps.requested, self.taps.completed)
        self._cupti.record(self._names, calls=not self.taps.records_calls)

    def _begin(self) -> None:
        """Open the file and start CUPTI; only then does the file lose what it held."""
        output = Output(self.output, self.session, self.process)
        try:
            self._record()
        except BaseException:
            output.discard()
            raise
        self.output, self._file = output.path, output.file
        output.begin(self._facts(self._cupti))

    def _facts(self, cupti: Cupti) -> dict[str, object]:
        return {
            "streamlint": __version__,
            "python": sys.version.split()[0],
            "cupti": cupti.version,
            "session": self.session.id,
            "process": self.process,
            "main": threading.main_thread().native_id,
            "command": sys.argv,
            "root": self.stacks.root,
            "folder": os.getcwd(),
            "start": cupti.now(),
            "time": time.time(),
        }

    def stop(self, leaves: bool = False) -> None:
        """Take what is left, close the file, and let CUPTI go, also after the file could not be written. It can leave it, too.

        Does nothing a second time, or in a forked child.
        """
        if not self._running or os.getpid() != self.process:
            return
        self._running = False
        self._end.set()
        self.taps.wake()
        self._thread.join()
        if not self._parts.is_away:
            self._cupti.flush(forced=True)
            self._turn()
            end = self._cupti.now()
            self._cupti.close(self.taps.leaves if leaves else None)
            self._rows.append(["end", end])
        self.stacks.keeps = False
        gpu = gpu_name()
        self._rows += [["gpu", gpu]] if gpu else []
        self._rows += [["note", note] for note in (*self.taps.notes(), *([_STAYS] if self._stays else []))]
        self._turn()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _forked(self) -> None:
        self._running = False
        self.stacks.keeps = False
        if self._file is not None:
            self._file.close()  # unbuffered: nothing of the parent's is written
            self._file = None

    def _work(self) -> None:
        while not self._end.is_set():
            self.taps.wait(max(min(self._flushed + FLUSH, self._parts.until) - time.monotonic(), 0.0))
            if self._parts.is_over() and not self._end.is_set():
                self._resume() if self._parts.is_away else self._pause()
            if self._parts.is_away:
                self._flushed = time.monotonic()
                continue
            if time.monotonic() - self._flushed >= FLUSH:
                self._cupti.flush()
                self._flushed = time.monotonic()
            self._turn()

    def _pause(self) -> None:
        """End a part: CUPTI leaves the process. All is written before, since records name kernels by memory of CUPTI's."""
        end = self._cupti.now()
        self._cupti.flush(forced=True)
        self._turn()
        self._stays |= not self._cupti.close(self.taps.leaves)
        self._parts.is_away = True
        self.taps.again()
        self._rows.append(["end", end])
        self._turn()
        self._parts.begin()

    def _resume(self) -> None:
        """Begin another part; later, if another profiler has CUPTI meanwhile."""
        self.taps.again()  # CUPTI may have left a moment later than it was asked
        try:
            self._cupti.subscribe(self.taps.called)
            self._record()
            self._tell()
            self._parts.is_away = False
            self._rows.append(["part", self._cupti.now()])
        except StreamlintError:
            pass
        self._parts.begin()

    def _turn(self) -> None:
        """Write what was collected: rows first, which the blocks after them need."""
        links, filled = self.taps.take()
        records = [*self.taps.calls(), *(self._read(address, length) for address, length in filled)]
        self._name_threads(links)
        self._name_rank()
        rows, self._rows = self._rows, []
        new, self.stacks.rows = self.stacks.rows, []
        rows += new
        if self._file is None:
            return
        try:
            if rows:
                form.write_rows(self._file, rows)
            if links:
                form.write(self._file, form.LINKS, b"".join(form.LINK.pack(*link) for link in links))
            for start in range(0, len(records), _TOGETHER):
                form.write(self._file, form.RECORDS, b"".join(records[start : start + _TOGETHER]))
        except OSError as error:
            print(f"streamlint: {self.output}: {error.strerror}; the program goes on, the recording ends here", file=sys.stderr)
            self._file.close()
            self._file = None

    def _read(self, address: int, length: int) -> bytes:
        """What is kept of the records of a buffer, which is given back; the names that they point to become rows."""
        data, names = self.taps.read(address, length, self._cupti.size_of)
        for name in names:
            self._rows.append(["kernel", name, ctypes.string_at(name).decode(errors="replace") if name else ""])
        self.taps.release(address)
        return data

    def _name_threads(self, links: list[tuple[int, int, int]]) -> None:
        if not links:
            return
        named = {thread.native_id or 0: thread.name for thread in threading.enumerate()}
        for thread in self.taps.meanwhile - set(self._threads):
            self._rows.append(["meanwhile", thread])
            named.setdefault(thread, _name_of(thread))
        for thread, name in named.items():
            if self._threads.get(thread) != name:
                self._threads[thread] = name
                self._rows.append(["thread", thread, name[:_DEEPEST]])

    def _name_rank(self) -> None:
        """Say which rank this process is, once that is known."""
        if self._rank is None:
            self._rank = _rank()
            if self._rank is not None:
                self._rows.append(["rank", self._rank])


def _rank() -> int | None:
    """This process's rank in PyTorch's default group once that has begun, else the launcher's word; None where there is neither.

    PyTorch is asked by what it has loaded: it may be in the middle of its import, or of its end.
    """
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_initialized():
            return int(distributed.get_rank())
    except (AttributeError, RuntimeError, ValueError):
        pass
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdecimal() else None


def taps_for(stacks: Stacks, cupti: Cupti) -> NativeTaps | PythonTaps:
    """The callbacks: compiled ones, or those in Python where they cannot be compiled or loaded, or Python's frames cannot be read."""
    try:
        return NativeTaps(compiled(), stacks, cupti.library)
    except LookupError as error:
        return PythonTaps(stacks, str(error))


def _name_of(thread: int) -> str:
    """The system's name of a thread that Python did not start: PyTorch calls its own pt_autograd_0."""
    try:
        with open(f"/proc/self/task/{thread}/comm", encoding="utf-8", errors="replace") as file:
            name = file.read().strip()
    except OSError:
        return f"thread {thread}"
    return "autograd" if name.startswith("pt_autograd") else name


def start_until_exit(output: str, root: str, share: float = 1.0) -> Recorder:
    """Record until the interpreter ends, after its other threads and exit handlers; a share of the time."""
    recorder = Recorder(output, open_cupti(), root, share=share)
    recorder.start()
    atexit.register(recorder.stop)
    return recorder
