"""Runs tests and writes in which kind of memory the tensors of a package were. Needs Python 3.12 and PyTorch.

    python benchmarks/observed_kinds.py PACKAGE OUTPUT ARGUMENT…     the folder of a package; arguments of pytest

For each parameter that held a tensor, and each attribute of an object that a method was called on: pageable or pinned memory
of the host, or a CUDA device. `known_kinds.py` holds it against the program facts.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

Row = tuple[str, str, str, str]  # file, qualified name of a function or class, parameter or ``.attribute``, kind
MOST_CALLS = 400
"""Calls of one function that are looked at."""


class Observer:
    """Looks at the tensors in parameters and attributes while the code of one folder runs."""

    def __init__(self, root: Path) -> None:
        self._home = f"{root.resolve()}/"
        self._calls: Counter[CodeType] = Counter()
        self._rows: set[Row] = set()
        self._busy = False
        self.tensor: type[Any] | None = None  # PyTorch's, once the suite has imported it

    def start(self) -> None:
        """Begin to watch."""
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.COVERAGE_ID, "observed kinds")
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.PY_START, self._on_start)
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.PY_RETURN, self._on_return)
        monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.PY_START)

    def stop(self) -> None:
        """Watch no more."""
        sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, 0)
        sys.monitoring.free_tool_id(sys.monitoring.COVERAGE_ID)

    def rows(self) -> list[Row]:
        """What was seen, sorted."""
        return sorted(self._rows)

    def _on_start(self, code: CodeType, _: int) -> Any:
        if not code.co_filename.startswith(self._home):
            return sys.monitoring.DISABLE
        if self._calls[code] == 0:
            sys.monitoring.set_local_events(sys.monitoring.COVERAGE_ID, code, sys.monitoring.events.PY_RETURN)
        self._calls[code] += 1
        if self._calls[code] > MOST_CALLS:
            return sys.monitoring.DISABLE
        self._look(sys._getframe(1), with_parameters=True)
        return None

    def _on_return(self, code: CodeType, _offset: int, _value: object) -> Any:
        if self._calls[code] > MOST_CALLS:
            return sys.monitoring.DISABLE
        self._look(sys._getframe(1), with_parameters=False)
        return None

    def _look(self, frame: FrameType, with_parameters: bool) -> None:
        if self.tensor is None and (torch := sys.modules.get("torch")) is not None:
            self.tensor = getattr(torch, "Tensor", None)
        if self._busy or self.tensor is None:
            return
        self._busy = True
        try:
            code = frame.f_code
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            values = frame.f_locals
            for name in names if with_parameters else ():
                self._note(code.co_filename, code.co_qualname, name, values.get(name))
            if names[:1] == ("self",):
                self._attributes(values.get("self"))
        finally:
            self._busy = False

    def _attributes(self, value: object) -> None:
        held = getattr(value, "__dict__", None)
        owner = next((one for one in type(value).__mro__ if self._file_of(one)), None)
        if owner is None or not isinstance(held, dict):
            return
        inner = (held.get(name) for name in ("_parameters", "_buffers"))  # of a torch.nn.Module
        for name, one in chain(held.items(), *(each.items() for each in inner if isinstance(each, dict))):
            self._note(self._file_of(owner), owner.__qualname__, f".{name}", one)

    def _file_of(self, owner: type) -> str:
        """The file of a class; "" for one that is not of the folder."""
        file = getattr(sys.modules.get(owner.__module__), "__file__", None) or ""
        return file if file.startswith(self._home) else ""

    def _note(self, file: str, owner: str, name: str, value: object) -> None:
        if self.tensor is not None and isinstance(value, self.tensor) and (kind := kind_of(value)):
            self._rows.add((file.removeprefix(self._home), owner, name, kind))


def kind_of(tensor: Any) -> str:
    """Where a tensor is; "" for one without memory of the host or of a CUDA device."""
    if tensor.device.type == "cuda":
        return "cuda"
    if tensor.device.type != "cpu" or tensor.layout is not sys.modules["torch"].strided:
        return ""
    return "pinned" if tensor.is_pinned() else "pageable"


def main(package: str, output: str, *arguments: str) -> int:
    """Run the suite, and write what was seen."""
    observer = Observer(Path(package))
    observer.start()
    try:
        status = int(pytest.main(["-q", "-p", "no:cacheprovider", *arguments]))
    finally:
        observer.stop()
    rows = ",\n".join(json.dumps(row) for row in observer.rows())
    Path(output).write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this script: its modules are not the suite's
    sys.exit(main(*sys.argv[1:]))
