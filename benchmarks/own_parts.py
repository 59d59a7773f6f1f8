"""What libraries do of the parts that streamlint has of its own: `docs/dependencies.md` holds the figures.

    python benchmarks/own_parts.py

A library that is not installed is left out: attrs, msgspec, loky, pebble, atomicwrites and rich are asked, none of which streamlint needs.
"""

from __future__ import annotations

import importlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = [f"file{number}.py" for number in range(200)]
FATAL = "file100.py"  # the process that gets this one dies

# A hundred frozen classes of eight fields, as the package has 230 of, made in a Python of their own.
_CLASSES = """
import sys; sys.path.insert(0, {root!r})
{imports}
for number in range(100):
    exec(f"{decorator}\\nclass C{{number}}{base}:\\n" + "".join(f"    f{{one}}: int = 0\\n" for one in range(8)))
"""
MAKERS = {
    "streamlint.support.records": ("from streamlint.support.records import record", "@record(frozen=True, slots=True)", ""),
    "dataclasses": ("from dataclasses import dataclass", "@dataclass(frozen=True, slots=True)", ""),
    "attrs": ("import attrs", "@attrs.frozen", ""),
    "msgspec": ("import msgspec", "", "(msgspec.Struct, frozen=True)"),
}


def makers() -> Iterator[tuple[str, str]]:
    """Processor time of importing each maker of records and making a hundred classes with it."""
    bare = _cost("pass")
    for name, (imports, decorator, base) in MAKERS.items():
        if _is_there(name):
            cost = _cost(_CLASSES.format(root=str(ROOT), imports=imports, decorator=decorator, base=base)) - bare
            yield name, f"{cost:.0f} ms"


def _cost(code: str) -> float:
    times = []
    for _ in range(9):
        process = subprocess.Popen([sys.executable, "-c", code])
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, code
        times.append((used.ru_utime + used.ru_stime) * 1000)
    return statistics.median(times)


def work(name: str) -> str:
    """What a worker does with a name; it dies of one."""
    if name == FATAL:
        os.kill(os.getpid(), signal.SIGKILL)
    return name


Work = Callable[[str], str]
Pool = Callable[[Work, list[str]], list[str]]


def _own(task: Work, names: list[str]) -> list[str]:
    from streamlint.runner import workers

    return [name for name, answer in workers.as_done(task, names, 2, instead=lambda name, why: "") if answer]


def _of_futures(pool: Callable[[], object], schedule: str = "submit") -> Pool:
    def answered(task: Work, names: list[str]) -> list[str]:
        with pool() as executor:  # type: ignore[attr-defined]
            futures = [getattr(executor, schedule)(task, *([[name]] if schedule == "schedule" else [name])) for name in names]
            return [future.result() for future in futures if future.exception() is None]

    return answered


def _pools() -> Iterator[tuple[str, Pool]]:
    yield "streamlint.runner.workers", _own
    from concurrent.futures import ProcessPoolExecutor

    yield "concurrent.futures", _of_futures(lambda: ProcessPoolExecutor(2))
    if _is_there("loky"):
        loky = importlib.import_module("loky")
        yield "loky", _of_futures(lambda: loky.ProcessPoolExecutor(2))
    if _is_there("pebble"):
        pebble = importlib.import_module("pebble")
        yield "pebble", _of_futures(lambda: pebble.ProcessPool(2), "schedule")


def pools() -> Iterator[tuple[str, str]]:
    """How many of 199 names have an answer beside one that kills its process, what they take without it, and whether a closure works."""
    others = [one for one in NAMES if one != FATAL]
    held = threading.Lock()
    for name, run in _pools():
        start = time.perf_counter()
        run(work, others)
        took = time.perf_counter() - start
        closure = len(run(lambda one: one if held else "", others)) == len(others)
        left = f"{len(run(work, NAMES))} of {len(others)} answered; {1000 * took:.0f} ms"
        yield name, f"{left}; {'takes a closure' if closure else 'takes no closure'}"


def writers() -> Iterator[tuple[str, str]]:
    """What is left of a file's mode, its attributes and the link to it when it is written anew."""

    def own(path: Path) -> None:
        from streamlint.support.writing import write_output

        write_output(path, "new")

    def atomicwrites(path: Path) -> None:
        with importlib.import_module("atomicwrites").atomic_write(path, overwrite=True) as file:
            file.write("new")

    for name, write in (("streamlint.support.writing", own), ("atomicwrites", atomicwrites)):
        if not _is_there(name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            file, link = Path(folder, "file"), Path(folder, "link")
            file.write_text("old")
            file.chmod(0o640)
            link.symlink_to(file)
            write(file)
            mode = file.stat().st_mode & 0o777
            write(link)
            yield name, f"mode 640 becomes {mode:o}; a link {'stays one' if link.is_symlink() else 'becomes a file'}"


def reports() -> Iterator[tuple[str, str]]:
    """Processor time of importing what draws a report on a terminal."""
    bare = _cost("pass")
    own = _cost(f"import sys; sys.path.insert(0, {str(ROOT)!r}); import streamlint.report.full")
    yield "streamlint.report.full", f"{own - bare:.0f} ms to import"
    if _is_there("rich"):
        code = "import rich.console, rich.syntax, rich.panel; rich.console.Console().print('')"
        yield "rich", f"{_cost(f'import sys; sys.stdout = open({os.devnull!r}, chr(119)); {code}') - bare:.0f} ms to import"


def _is_there(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for part in (makers, pools, writers, reports):
        print(f"\n{(part.__doc__ or '').strip()}")
        for library, said in part():
            print(f"  {library:28} {said}")
