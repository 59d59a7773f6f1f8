"""What intermediate representations cost: to lower files from nothing, and to load what was kept of them.

    python benchmarks/ir_loading.py [--megabytes 50] [--rounds 3] [FOLDER…]

Without a folder, it takes the packages and the standard library of the Python that runs it, each content once. One process, CPU
time: `lower` parses and lowers, `load` reads all kept files and unpacks what each tells of itself, `functions` unpacks all functions,
which a run does for those that matter alone. Fails if `load` takes more than two seconds for 50 MB.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from streamlint.cache.intermediate import IntermediateCache
from streamlint.frontends import UnreadableSource, python
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower
from streamlint.support.memory import seldom_collected
from streamlint.support.reading import Unreadable, decode

MEGABYTE = 1_000_000
MOST = 2.0  # seconds for 50 MB
T = TypeVar("T")
Files = list[tuple[str, bytes]]


def collect(folders: list[Path], most: int) -> Files:
    """Python files in order, as many as fit, each content once."""
    found: Files = []
    seen: set[bytes] = set()
    size = 0
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            data = path.read_bytes() if path.is_file() else b""
            if not data or data in seen or len(data) > MEGABYTE:
                continue
            seen.add(data)
            found.append((str(path), data))
            size += len(data)
            if size >= most:
                return found
    return found


def lowered(path: str, data: bytes) -> ModuleIR | None:
    """A file's representation; None of what is no Python."""
    try:
        return lower(python.lower(path, decode(data, "python")[0]))
    except (Unreadable, UnreadableSource):
        return None


def fill(cache: IntermediateCache, files: Files) -> tuple[Files, float, int]:
    """Lower and keep all files. Those that can be read, the CPU seconds of lowering, and how many bytes are kept."""
    kept: Files = []
    spent, size = 0.0, 0
    for path, data in files:
        start = time.process_time()
        module = lowered(path, data)
        spent += time.process_time() - start
        if module is not None:
            cache.keep(module, "python", data)
            kept.append((path, data))
            size += len(module.dump())
    return kept, spent, size


def load(cache: IntermediateCache, files: Files) -> list[ModuleIR]:
    """All files from the cache."""
    found = [cache.load(path, "python", data) for path, data in files]
    return [module for module in found if module is not None]


def unpack(modules: list[ModuleIR]) -> int:
    """All functions of all files; how many instructions they have."""
    return sum(len(block) for module in modules for code in module.codes() for block in code.blocks)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """A result and the CPU seconds that it took."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def measure(files: Files, rounds: int) -> float:
    """Print the table; the median seconds of loading."""
    with tempfile.TemporaryDirectory() as folder:
        kept, spent, size = fill(IntermediateCache(Path(folder)), files)
        megabytes = sum(len(data) for _, data in kept) / MEGABYTE
        loads, functions = [], []
        for _ in range(rounds):
            modules, seconds = timed(lambda: load(IntermediateCache(Path(folder)), kept))
            loads.append(seconds)
            instructions, seconds = timed(lambda modules=modules: unpack(modules))  # type: ignore[misc]
            functions.append(seconds)
        codes = sum(len(module) for module in modules)
    print(f"{len(kept):,} files, {megabytes:.1f} MB of source, {codes:,} functions, {instructions:,} instructions")
    print(f"kept       {size / MEGABYTE:8.1f} MB   {size / instructions:.1f} bytes an instruction")
    print(f"lower      {spent:8.2f} s    {spent / megabytes:.3f} s a MB")
    print(f"load       {statistics.median(loads):8.2f} s    {statistics.median(loads) / megabytes:.3f} s a MB")
    print(f"functions  {statistics.median(functions):8.2f} s    {statistics.median(functions) / megabytes:.3f} s a MB")
    return statistics.median(loads) * 50 / megabytes


def main() -> int:
    """Measure; 1 where loading takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    installed = [Path(sysconfig.get_path(name)) for name in ("purelib", "stdlib")]
    files = collect(options.folders or installed, int(options.megabytes * MEGABYTE))
    if not files:
        parser.error("no Python files")
    with seldom_collected():
        return int(measure(files, options.rounds) > MOST)


if __name__ == "__main__":
    sys.exit(main())
