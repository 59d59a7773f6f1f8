"""Opening a recorded run: which reader reads it is decided by its content, not by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from streamlint.support.errors import PathError, StreamlintError
from streamlint.trace.model import Trace
from streamlint.trace.readers import kineto, nsight, recorded
from streamlint.trace.readers.joining import tell_of_clocks
from streamlint.trace.recording import form

Reader = Callable[[Path, Sequence[Path]], Trace]
# What a file of a kind begins with. What is none of these is read as JSON.
_BEGINNINGS: tuple[tuple[bytes, Reader], ...] = ((nsight.HEADER, nsight.read), (form.MAGIC, lambda path, roots: recorded.read(path)))
_JSON = (b"{", b"[", b"\x1f\x8b", b"\xef\xbb\xbf")
_REPORTS = frozenset({".nsys-rep", ".qdrep", ".qdstrm"})
_RECORDED = frozenset({".json", ".gz", ".sqlite", ".db", ".slt", *_REPORTS})
_ENOUGH = 64


def read(path: Path, roots: Sequence[Path]) -> Trace:
    """The run that a file holds, or that the files of a folder hold, a process or rank each. ``roots`` are the user's files and folders.

    What could not be read is said in the trace's notes. Raises StreamlintError where nothing of a run can be read, and PathError where
    there is no such path.
    """
    try:
        if path.is_dir():
            return _folder(path, roots)
        return _file(path, roots)
    except FileNotFoundError as error:
        raise PathError(f"{path} does not exist") from error
    except OSError as error:
        raise StreamlintError(f"{path} cannot be read: {error.strerror or error}") from error


def _file(path: Path, roots: Sequence[Path]) -> Trace:
    trace = _reader_of(path)(path, roots)
    tell_of_clocks(trace)
    return trace


def _reader_of(path: Path) -> Reader:
    with path.open("rb") as file:
        beginning = file.read(_ENOUGH)
    for start, reader in _BEGINNINGS:
        if beginning.startswith(start):
            return reader
    if not beginning.lstrip().startswith(_JSON):
        if path.suffix in _REPORTS:
            wanted = path.with_suffix(".sqlite").name
            raise StreamlintError(
                f"{path} is a report of Nsight Systems: export it with `nsys export --type sqlite -o {wanted} {path.name}`"
            )
        if path.suffix in (".sqlite", ".db"):
            raise StreamlintError(f"{path} is no SQLite database: it is damaged or encrypted")
    return kineto.read


def _folder(path: Path, roots: Sequence[Path]) -> Trace:
    """All runs of a folder in one: files of one kind, as a profiler writes one for each rank."""
    found = sorted(one for one in path.iterdir() if one.suffix in _RECORDED and one.is_file())
    traces: list[Trace] = []
    notes: list[str] = []
    for one in found:
        try:
            traces.append(_file(one, roots))
        except StreamlintError as error:
            notes.append(str(error))
    if not traces:
        why = f": {notes[0]}" if notes else ""
        raise StreamlintError(f"{path} is a folder without a recorded run{why}")
    origins = sorted({trace.origin for trace in traces})
    if len(origins) > 1:
        raise StreamlintError(f"{path} holds runs of several kinds ({', '.join(origins)}): name one of its files")
    whole = traces[0]
    for other in traces[1:]:
        _add(whole, other)
    whole.notes = list(dict.fromkeys([*whole.notes, *notes]))
    whole.sort()
    return whole


def _add(whole: Trace, other: Trace) -> None:
    """Put another process's run beside a run. A process that both have is another machine's where their times overlap."""
    mine = {call.process for call in whole.calls}
    overlap = other.start < whole.end and whole.start < other.end
    renamed = {process: _free(process, mine) for process in {call.process for call in other.calls} if overlap and process in mine}
    first = len(whole.stacks) - 1
    for call in other.calls:
        call.process = renamed.get(call.process, call.process)
        call.stack += first if call.stack else 0
    for work in other.works:
        work.process = renamed.get(work.process, work.process)
    whole.stacks += other.stacks[1:]
    whole.calls += other.calls
    whole.works += other.works
    for (process, number), stream in other.streams.items():
        stream.process = renamed.get(process, process)
        whole.streams.setdefault((stream.process, number), stream)
    for process, thread in other.main_threads.items():
        whole.main_threads.setdefault(renamed.get(process, process), thread)
    for (process, thread), name in other.thread_names.items():
        whole.thread_names.setdefault((renamed.get(process, process), thread), name)
    for process, rank in other.ranks.items():
        whole.ranks.setdefault(renamed.get(process, process), rank)
    whole.gpu = whole.gpu or other.gpu
    whole.notes += other.notes
    whole.start, whole.end = min(whole.start, other.start), max(whole.end, other.end)


def _free(process: int, taken: set[int]) -> int:
    """A number for a process that is not taken."""
    found = process
    while found in taken:
        found += 1 << 32
    taken.add(found)
    return found
