"""Runs a generated Python program with modules in place of PyTorch and CuPy that note who touches what."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from generated.texts import Place, Program

ACROSS = ("__add__", "__radd__", "__sub__", "__mul__", "__truediv__", "__getitem__")


@dataclass
class Log:
    """Lines that ran, and for each call of a library the lines that had touched what it was given."""

    folder: Path
    ran: set[Place] = field(default_factory=set)
    touched: dict[Place, set[Place]] = field(default_factory=dict)

    def place(self, frame: FrameType | None) -> Place | None:
        """Where the program is, seen from a frame above or in it."""
        home = f"{self.folder}/"
        while frame is not None:
            if frame.f_code.co_filename.startswith(home):
                return frame.f_code.co_filename[len(home) :], frame.f_lineno
            frame = frame.f_back
        return None

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        """A trace function: notes the lines of the program."""
        if not frame.f_code.co_filename.startswith(f"{self.folder}/"):
            return None
        if event == "line" and (here := self.place(frame)) is not None:
            self.ran.add(here)
        return self.trace


class Thing:
    """Anything of a library: it has every attribute and may be called, entered and calculated with."""

    def __init__(self, log: Log, touched: set[Place]) -> None:
        self._log, self._touched = log, touched

    def __getattr__(self, name: str) -> Thing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing(self._log, self._touched)

    def __call__(self, *args: object, **kwargs: object) -> Thing:
        here = self._log.place(sys._getframe(1))
        given = [self, *(value for value in (*args, *kwargs.values()) if isinstance(value, Thing))]
        before = {place for thing in given for place in thing._touched}
        if here is not None:
            self._log.touched.setdefault(here, set()).update(before)
            for thing in given:
                thing._touched.add(here)
        for value in (*args, kwargs.get("target")):
            if callable(value) and not isinstance(value, Thing):  # a callback, or what a thread runs
                value(*kwargs.get("args", args[1:]))  # type: ignore[misc]
        return Thing(self._log, before | ({here} if here is not None else set()))

    def __enter__(self) -> Thing:
        return self

    def __exit__(self, *_: object) -> None:
        return None


for _name in ACROSS:
    setattr(Thing, _name, lambda self, *args: self(*args))


def _library(name: str, log: Log) -> ModuleType:
    """A module: what is asked of it has not been touched yet."""
    module = ModuleType(name)
    module.__getattr__ = lambda _: Thing(log, set())  # type: ignore[method-assign]
    return module


class _Module:
    """``torch.nn.Module``: a call is its ``forward``."""

    def __call__(self, *args: object) -> object:
        return self.forward(*args)  # type: ignore[attr-defined]


def _libraries(log: Log) -> dict[str, ModuleType]:
    torch, nn, threading = (_library(name, log) for name in ("torch", "torch.nn", "threading"))
    nn.Module = _Module  # type: ignore[attr-defined]
    torch.nn = nn  # type: ignore[attr-defined]
    return {"torch": torch, "cupy": _library("cupy", log), "threading": threading}


@contextlib.contextmanager
def _instead(modules: dict[str, ModuleType], folder: Path, program: Program) -> Iterator[None]:
    """The interpreter's modules with others among them; what is imported meanwhile is forgotten."""
    kept, path = dict(sys.modules), list(sys.path)
    for name in program.files:
        sys.modules.pop(name.partition("/")[0].removesuffix(".py"), None)
    sys.modules.update(modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        sys.path[:] = path
        sys.modules.clear()
        sys.modules.update(kept)


def run(program: Program, folder: Path) -> Log:
    """Import and run a program that was written to a folder."""
    log = Log(folder)
    file, function = program.entry
    before = sys.gettrace()
    with _instead(_libraries(log), folder, program):
        sys.settrace(log.trace)
        try:
            getattr(importlib.import_module(file.removesuffix(".py")), function)()
        finally:
            sys.settrace(before)
    return log
