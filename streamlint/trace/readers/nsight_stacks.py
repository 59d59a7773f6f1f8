"""The callers of CUDA calls in an export of Nsight Systems (``--cudabacktrace``, ``--python-backtrace=cuda``).

A chain is the rows of one number in a table of call chains, a frame each: ``symbol`` and ``module`` are texts of ``StringIds``, depth 0 is
the innermost. NVIDIA's reference names the columns of native frames alone. A frame counts as Python where its texts name a Python file;
its line is read from a column for it or from the text (``file.py:12``). Other frames count as the user's where their module is none of
the system's, of Python's packages or of CUDA's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from streamlint.support.records import record
from streamlint.trace.model import Frame, Trace
from streamlint.trace.readers.sources import Sources
from streamlint.trace.readers.tables import Table

Rows = Callable[..., Iterator[tuple[int | str | None, ...]]]
_TABLES = ("CUDA_CALLCHAINS", "PYTHON_CALLCHAINS")
_LINES = ("line", "lineNumber", "lineNo")
_PYTHON = re.compile(r"(?P<file>[^\s:()\"']+\.pyw?)(?::| line |\()?(?P<line>\d+)?")
_SYSTEM = re.compile(r"^(?:/usr/|/lib|/opt/|/snap/|\[)|site-packages|dist-packages|libcu|libnv|libtorch|libpython|/python[\d.]*$")


@record(slots=True)
class Stacks:
    """Chains of callers as stacks of the user's frames."""

    rows: Rows
    columns: Mapping[str, frozenset[str]]
    strings: Mapping[int, str]
    sources: Sources

    def attribute(self, trace: Trace, chain_of: Mapping[int, int]) -> None:
        """Give calls their stacks, by the identity of a call and the number of its chain."""
        table = next((name for name in _TABLES if name in self.columns), None)
        if table is None or not chain_of:
            trace.notes.append("the export has no callers, so costs have no lines: record with --python-backtrace=cuda")
            return
        numbers: dict[int, int] = {}
        stacks = Table(trace.stacks)
        chains = self._chains(table, set(chain_of.values()))
        for call in trace.calls:
            chain = chain_of.get(id(call), 0)
            if chain not in numbers:
                frames = (self._frame(*one[1:]) for one in sorted(chains.get(chain, ()), key=lambda one: one[0]))
                numbers[chain] = stacks.number(tuple(frame for frame in frames if frame))
            call.stack = numbers[chain]

    def _chains(self, table: str, wanted: set[int]) -> dict[int, list[tuple[int, str, str, int]]]:
        """Depth, symbol, module and line of each frame of the chains that calls have."""
        line = next((name for name in _LINES if name in self.columns[table]), "line")
        found: dict[int, list[tuple[int, str, str, int]]] = defaultdict(list)
        for number, symbol, module, depth, row in self.rows(table, "id", "symbol", "module", "stackDepth", line):
            if isinstance(number, int) and number in wanted:
                found[number].append((_number(depth), self._text(symbol), self._text(module), _number(row)))
        return found

    def _text(self, value: int | str | None) -> str:
        return value if isinstance(value, str) else self.strings.get(value or 0, "")

    def _frame(self, symbol: str, module: str, line: int) -> Frame | None:
        for text, other in ((module, symbol), (symbol, module)):
            if found := _PYTHON.search(text):
                source = self.sources.find(found["file"], ())
                function = _PYTHON.sub("", other).strip(" ():") if other != text else text.replace(found[0], "").strip(" ():")
                return Frame(source.path, line or int(found["line"] or 0), function) if source else None
        if not symbol or not module or _SYSTEM.search(module):
            return None
        return Frame(module, 0, symbol)


def _number(value: int | str | None) -> int:
    return value if isinstance(value, int) else 0
