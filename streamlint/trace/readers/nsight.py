"""An export of Nsight Systems (``nsys export --type sqlite``).

Schema: NVIDIA's "SQLite Export Schema Reference" (2020.3 to 2025). Tables are made where there is something to put into them, and
columns came with versions: what is not there is left out. Identifiers of threads and processes are packed, 24 bits each. Memory kinds
are those of ``ENUM_CUDA_MEM_KIND``; its numbers stand below for exports that are older than that table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from streamlint.support.errors import StreamlintError
from streamlint.support.records import field, record
from streamlint.trace.kinds import plain
from streamlint.trace.model import UNKNOWN, Call, Stream, Trace, Work
from streamlint.trace.readers import joining
from streamlint.trace.readers.nsight_stacks import Stacks
from streamlint.trace.readers.sources import Sources

HEADER = b"SQLite format 3\0"
HOW_TO_RECORD = "record with nsys profile --trace=cuda, and export with nsys export --type sqlite"
_PID, _TID = 24, 0xFFFFFF
_CUPTI = "CUPTI_ACTIVITY_KIND_"
_APIS = ("RUNTIME", "DRIVER")
_MEMORY = {0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device", 6: "managed"}
_WORDS = (("PAGEABLE", "pageable"), ("PINNED", "pinned"), ("MANAGED", "managed"), ("ARRAY", "array"), ("DEVICE", "device"))
_COPIES = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
_NON_BLOCKING, _NULL = 2, 3  # ENUM_CUPTI_STREAM_TYPE
_NO_STREAM = 0xFFFFFFFF
_DAMAGED = (sqlite3.Error, UnicodeError)  # the second of damaged names
Value = int | str | None


@record(slots=True)
class Database:
    """The tables of an export, by name."""

    path: Path
    connection: sqlite3.Connection
    columns: dict[str, frozenset[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def load(self) -> None:
        """Find out which tables there are.

        Raises StreamlintError where the file is damaged.
        """
        try:
            for (name,) in self.connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall():
                quoted = str(name).replace('"', '""')
                self.columns[str(name)] = frozenset(row[1] for row in self.connection.execute(f'PRAGMA table_info("{quoted}")'))
        except _DAMAGED as error:
            raise StreamlintError(f"{self.path} cannot be read: {error}; it is damaged or encrypted") from error

    def rows(self, table: str, *columns: str) -> Iterator[tuple[Value, ...]]:
        """The rows of a table, None for columns that it does not have; none where there is no such table. Damage ends them with a note."""
        known = self.columns.get(table)
        if known is None:
            return
        chosen = ", ".join(f'"{name}"' if name in known else "NULL" for name in columns)
        try:
            yield from self.connection.execute(f'SELECT {chosen} FROM "{table}"')
        except _DAMAGED as error:
            self.notes.append(f"{table} of {self.path} was read in part: {error}")


def read(path: Path, roots: Sequence[Path]) -> Trace:
    """Read an export.

    Raises StreamlintError where it is damaged or says nothing of CUDA.
    """
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        database = Database(path, connection)
        database.load()
        return _Export(database, Sources(roots)).trace()
    finally:
        connection.close()


class _Export:
    """What an export says, table by table."""

    def __init__(self, database: Database, sources: Sources) -> None:
        self.database = database
        self.sources = sources
        self.strings = {_int(key): str(text) for key, text in database.rows("StringIds", "id", "value")}
        self.memory = _MEMORY | {_int(key): _word(str(name)) for key, name in database.rows("ENUM_CUDA_MEM_KIND", "id", "name")}
        self.negative = 0
        self.chains: list[int] = []  # of each call, 0 where it has none

    def trace(self) -> Trace:
        trace = Trace("nsight")
        tables = [f"{_CUPTI}{name}" for name in (*_APIS, "KERNEL", "MEMCPY", "MEMSET")]
        if not any(table in self.database.columns for table in tables):
            raise StreamlintError(f"{self.database.path} has no tables of CUDA: {HOW_TO_RECORD}")
        calls = list(self.calls())
        chain_of = {id(call): chain for call, chain in zip(calls, self.chains, strict=True) if chain}
        trace.works = [*self.kernels(), *self.copies(), *self.fills(), *self.graphs()]
        if not calls and not trace.works:
            raise StreamlintError(f"{self.database.path} has no CUDA events: {HOW_TO_RECORD}")
        trace.calls, around = joining.outermost(calls)
        joining.join_works(trace.works, around, {call.process for call in calls})
        self.waits(around)
        joining.leave_out_jumps(trace)
        joining.mark_captures(trace.calls)
        self.streams(trace)
        trace.main_threads = joining.main_threads(trace.calls, {})
        trace.thread_names = self.threads()
        trace.gpu = next((str(name) for (name,) in self.database.rows("TARGET_INFO_GPU", "name") if name), "")
        Stacks(self.database.rows, self.database.columns, self.strings, self.sources).attribute(trace, chain_of)
        trace.notes += self.notes(tables)
        trace.sort()
        return trace

    def notes(self, tables: Sequence[str]) -> list[str]:
        missing = [name for name in tables if name not in self.database.columns and not name.endswith(("DRIVER", "MEMSET"))]
        found = list(self.database.notes)
        if missing:
            found.append(f"{self.database.path} has no {' and no '.join(missing)}: nothing is known of what they would say")
        if self.negative:
            found.append(f"{self.negative} events end before they begin, and count as instants: a clock jumped")
        return found

    def text(self, key: Value) -> str:
        return self.strings.get(_int(key), "") if not isinstance(key, str) else key

    def span(self, start: Value, end: Value) -> tuple[int, int]:
        begin = _int(start)
        if end is None or _int(end) >= begin:
            return begin, begin if end is None else _int(end)
        self.negative += 1
        return begin, begin

    def calls(self) -> Iterator[Call]:
        """Calls of the runtime and driver; ``chains`` gets the number of each call's chain of callers."""
        columns = ("start", "end", "globalTid", "correlationId", "nameId", "returnValue", "callchainId")
        for table in _APIS:
            for start, end, thread, correlation, name, status, chain in self.database.rows(f"{_CUPTI}{table}", *columns):
                if start is None:
                    continue
                call = Call(plain(self.text(name)), *_thread(thread), *self.span(start, end), correlation=_int(correlation))
                call.failed = _int(status)
                self.chains.append(_int(chain))
                yield call

    def kernels(self) -> Iterator[Work]:
        for start, end, name, short, *rest in self._works("KERNEL", "demangledName", "shortName"):
            yield self._work("kernel", self.text(name) or self.text(short), start, end, rest)

    def copies(self) -> Iterator[Work]:
        for start, end, size, kind, source, destination, *rest in self._works("MEMCPY", "bytes", "copyKind", "srcKind", "dstKind"):
            work = self._work("copy", f"Memcpy {_COPIES.get(_int(kind), '')}".strip(), start, end, rest)
            work.bytes = _int(size)
            work.source, work.destination = self._memory(source), self._memory(destination)
            yield work

    def fills(self) -> Iterator[Work]:
        for start, end, size, kind, *rest in self._works("MEMSET", "bytes", "memKind"):
            work = self._work("fill", "Memset", start, end, rest)
            work.bytes, work.destination = _int(size), self._memory(kind)
            yield work

    def graphs(self) -> Iterator[Work]:
        """Whole graphs, where the nodes were not recorded one by one."""
        for start, end, graph, *rest in self._works("GRAPH_TRACE", "graphId"):
            yield self._work("kernel", f"graph {_int(graph)}", start, end, rest)

    def _works(self, table: str, *columns: str) -> Iterator[tuple[Value, ...]]:
        common = ("globalPid", "deviceId", "streamId", "correlationId")
        for row in self.database.rows(f"{_CUPTI}{table}", "start", "end", *columns, *common):
            if row[0] is not None:
                yield row

    def _work(self, kind: str, name: str, start: Value, end: Value, rest: Sequence[Value]) -> Work:
        process, device, stream, correlation = rest
        packed = -1 if process is None else _int(process) >> _PID & _TID
        return Work(kind, name, packed, _int(device), _int(stream), *self.span(start, end), correlation=_int(correlation))

    def _memory(self, kind: Value) -> str:
        return UNKNOWN if kind is None else self.memory.get(_int(kind), UNKNOWN)

    def waits(self, around: dict[tuple[int, int], Call]) -> None:
        """The streams that synchronizations waited for."""
        for process, stream, correlation in self.database.rows(f"{_CUPTI}SYNCHRONIZATION", "globalPid", "streamId", "correlationId"):
            call = around.get((_int(process) >> _PID & _TID, _int(correlation)))
            if call is not None and call.stream is None and stream is not None and 0 <= _int(stream) < _NO_STREAM:
                call.stream = _int(stream)

    def streams(self, trace: Trace) -> None:
        """The streams of work, and what the export says of them."""
        for work in trace.works:
            trace.streams.setdefault((work.process, work.stream), Stream(work.process, work.stream, device=work.device))
        for stream, process, flag in self.database.rows("TARGET_INFO_CUDA_STREAM", "streamId", "processId", "flag"):
            found = trace.streams.get((_int(process), _int(stream)))
            if found is not None and flag is not None:
                found.non_blocking = _int(flag) == _NON_BLOCKING
                found.is_default = _int(flag) == _NULL
        for process, stream in self.database.rows("TARGET_INFO_CUDA_CONTEXT_INFO", "processId", "nullStreamId"):
            found = trace.streams.get((_int(process), _int(stream)))
            if found is not None and stream is not None:
                found.is_default, found.non_blocking = True, False

    def threads(self) -> dict[tuple[int, int], str]:
        return {_thread(thread): self.text(name) for thread, name in self.database.rows("ThreadNames", "globalTid", "nameId")}


def _thread(packed: Value) -> tuple[int, int]:
    number = _int(packed)
    return number >> _PID & _TID, number & _TID


def _int(value: Value) -> int:
    try:
        return int(value) if value is not None else 0
    except (OverflowError, ValueError):  # a column may hold anything
        return 0


def _word(name: str) -> str:
    return next((kind for word, kind in _WORDS if word in name.upper()), UNKNOWN)
