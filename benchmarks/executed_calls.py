"""Runs a test suite and writes which calls within a package it made. Needs Python 3.12; run by call_edges.py.

    python benchmarks/executed_calls.py PACKAGE OUTPUT ARGUMENT…     arguments of pytest

An edge is a call in a file of the package, with the place of its expression, and the function of the package that it reached. Its kind:
`call` for a function or method that was called itself, `construct` for what a call of a class ran, `through` for what ran inside of a call
of something else (`map`, a partial, an object with `__call__`), `implicit` for what ran without a call (a property, an operator, `with`).
"""

from __future__ import annotations

import bisect
import dis
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import pytest

Edge = tuple[str, int, int, int, int, str, str, str]  # file, row, column, end row, end column, kind, callee's file, its qualified name
_CONSTRUCTORS = {"__init__", "__new__", "__post_init__"}
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Recorder:
    """Watches the code of one folder while it runs."""

    def __init__(self, root: Path) -> None:
        self._home = f"{root.resolve()}/"
        self._mine: dict[CodeType, bool] = {}
        self._watched: set[CodeType] = set()
        self._called: set[tuple[CodeType, int, CodeType]] = set()
        self._entered: set[tuple[CodeType, int, CodeType]] = set()
        self._classes: set[tuple[CodeType, int]] = set()
        self._others: set[tuple[CodeType, int]] = set()  # calls of what is neither a function nor a class

    def start(self) -> None:
        """Begin to watch."""
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.PROFILER_ID, "executed calls")
        monitoring.register_callback(monitoring.PROFILER_ID, monitoring.events.PY_START, self._on_start)
        monitoring.register_callback(monitoring.PROFILER_ID, monitoring.events.CALL, self._on_call)
        monitoring.set_events(monitoring.PROFILER_ID, monitoring.events.PY_START)

    def stop(self) -> None:
        """Watch no more."""
        sys.monitoring.set_events(sys.monitoring.PROFILER_ID, 0)
        sys.monitoring.free_tool_id(sys.monitoring.PROFILER_ID)

    def _is_mine(self, code: CodeType) -> bool:
        if code not in self._mine:
            self._mine[code] = code.co_filename.startswith(self._home)
        return self._mine[code]

    def _on_start(self, code: CodeType, _: int) -> Any:
        if not self._is_mine(code):
            return sys.monitoring.DISABLE
        if code not in self._watched:
            self._watched.add(code)
            sys.monitoring.set_local_events(sys.monitoring.PROFILER_ID, code, sys.monitoring.events.CALL)
        caller = sys._getframe(1).f_back
        if caller is not None and self._is_mine(caller.f_code):
            self._entered.add((caller.f_code, caller.f_lasti, code))
        return None

    def _on_call(self, code: CodeType, offset: int, called: object, _: object) -> None:
        function = called.__func__ if isinstance(called, MethodType) else called
        if isinstance(function, FunctionType) and self._is_mine(function.__code__):
            self._called.add((code, offset, function.__code__))
        else:
            (self._classes if isinstance(called, type) else self._others).add((code, offset))

    def edges(self) -> list[Edge]:
        """What was seen, sorted."""
        return sorted(set(self._edges()))

    def _edges(self) -> Iterator[Edge]:
        starts = {code: [step.offset for step in dis.get_instructions(code)] for code in self._watched}
        direct = {(code, start_of(starts[code], offset), callee) for code, offset, callee in self._called}
        classes, others = ({(code, start_of(starts[code], at)) for code, at in met} for met in (self._classes, self._others))
        for code, offset, callee in direct:
            if callee.co_name != "<genexpr>":  # an expression, made and called in one
                yield self._edge(code, offset, "call", callee)
        for code, last, callee in self._entered:
            offset = start_of(starts[code], last) if code in starts else last
            if (code, offset, callee) in direct or callee.co_flags & _RESUMED or not callee.co_flags & inspect.CO_OPTIMIZED:
                continue  # told already; where a generator goes on, not where it was called; the body of a class or module
            kind = _kind(dis.opname[code.co_code[offset]], callee.co_name, (code, offset) in classes, (code, offset) in others)
            yield self._edge(code, offset, kind, callee)

    def _edge(self, code: CodeType, offset: int, kind: str, callee: CodeType) -> Edge:
        row, end_row, column, end_column = list(code.co_positions())[offset // 2]
        place = (row or 0, (column or 0) + 1, end_row or 0, (end_column or 0) + 1)
        return (code.co_filename[len(self._home) :], *place, kind, callee.co_filename[len(self._home) :], callee.co_qualname)


def _kind(operation: str, callee: str, of_class: bool, of_other: bool) -> str:
    """The kind of what ran inside of an instruction. Calls with ``*args`` are reported where they are none of a function."""
    if not operation.startswith("CALL"):
        return "implicit"
    if operation == "CALL_FUNCTION_EX" and not (of_class or of_other):
        return "call"
    return "construct" if of_class and callee in _CONSTRUCTORS else "through"


def start_of(starts: list[int], offset: int) -> int:
    """The instruction that an offset lies in: a frame that waits for a call may point behind its caches."""
    return starts[bisect.bisect_right(starts, offset) - 1]


def main(package: str, output: str, *arguments: str) -> int:
    """Run the suite, and write the edges."""
    recorder = Recorder(Path(package))
    recorder.start()
    try:
        status = int(pytest.main(["-q", "-p", "no:cacheprovider", *arguments]))
    finally:
        recorder.stop()
    rows = ",\n".join(json.dumps(edge) for edge in recorder.edges())
    Path(output).write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this script: its modules are not the suite's
    sys.exit(main(*sys.argv[1:]))
