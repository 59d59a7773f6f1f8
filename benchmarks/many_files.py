"""Trees of very many files and folders, and files of very long lines: what a run over them takes.

    python benchmarks/many_files.py [--number 100000] [--megabytes 4 10] [--only NAME …]

Each kind of tree is made in a temporary folder and linted by `streamlint check --isolated`: without a cache, then twice with one. Told are
processor time, memory, the summary and the first warning. Exit code 1 if a run ended with a fault, or said nothing. With a smaller number
the same is tried in seconds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = """import torch


def run_%d():
    y = torch.empty(1 << 20, device="cuda")
    host = y.to("cpu", non_blocking=True)
    return host.numpy()
"""
WAITS = PYTHON.replace("    return host", "    torch.cuda.current_stream().synchronize()\n    return host")
CPP = """#include <cuda_runtime.h>

float run_%d(const float* d, cudaStream_t s) {
  float* h;
  cudaMallocHost(&h, 1 << 22);
  cudaMemcpyAsync(h, d, 1 << 22, cudaMemcpyDeviceToHost, s);
  %s
  return h[0];
}
"""
Make = Callable[[Path, int], None]


def _spread(folder: Path, number: int, write: Callable[[Path, int], None]) -> None:
    """At most a thousand to a folder."""
    for start in range(0, number, 1_000):
        place = folder / f"d{start}"
        place.mkdir()
        for index in range(start, min(start + 1_000, number)):
            write(place, index)


def empty(folder: Path, number: int) -> None:
    """Empty files."""
    _spread(folder, number, lambda place, index: (place / f"m{index}.py").touch())


def plain(folder: Path, number: int) -> None:
    """Files without CUDA."""
    _spread(folder, number, lambda place, index: _write(place / f"m{index}.py", f"import os\n\nprint(os.getcwd(), {index})\n"))


def folders(folder: Path, number: int) -> None:
    """Empty folders."""
    _spread(folder, number, lambda place, index: (place / f"f{index}").mkdir())


def long_names(folder: Path, number: int) -> None:
    """A fifth as many files with names of 248 characters."""
    _spread(folder, number // 5, lambda place, index: (place / f"{index:0245}.py").touch())


def broken_links(folder: Path, number: int) -> None:
    """Half as many links to nothing, each with its warning."""
    _spread(folder, number // 2, lambda place, index: (place / f"m{index}.py").symlink_to("nowhere"))


def one_folder(folder: Path, number: int) -> None:
    """Empty files in one folder."""
    for index in range(number):
        (folder / f"m{index}.py").touch()


def findings(folder: Path, number: int) -> None:
    """A hundredth as many files with a finding each."""
    _spread(folder, number // 100, lambda place, index: _write(place / f"m{index}.py", PYTHON % index))


def cuda(folder: Path, number: int) -> None:
    """Files that use CUDA, in turn Python and C++, of which one in a hundred has a finding."""

    def write(place: Path, index: int) -> None:
        if index % 2:
            _write(place / f"m{index}.cu", CPP % (index, "" if index % 100 == 1 else "cudaStreamSynchronize(s);"))
        else:
            _write(place / f"m{index}.py", (PYTHON if index % 100 == 50 else WAITS) % index)

    _spread(folder, number, write)


def _write(path: Path, text: str) -> None:
    path.write_text(text)


TREES: dict[str, Make] = {each.__name__: each for each in (empty, plain, folders, long_names, broken_links, one_folder, findings, cuda)}
HEAD, CUDA = "import torch\ns = torch.cuda.Stream()\n", "#include <cuda_runtime.h>\nvoid f(float* a, cudaStream_t s) { "
LINES: dict[str, tuple[str, str, str, str]] = {  # name, before, repeated, behind
    "a list of numbers": ("a.py", HEAD + "x = [", "12345, ", "]\ns.synchronize()\n"),
    "a text": ("a.py", HEAD + "x = '", "abcdefgh", "'\ns.synchronize()\n"),
    "statements": ("a.py", HEAD, "x = 1; ", "s.synchronize()\n"),
    "a comment": ("a.py", HEAD + "# ", "abcdefgh ", "\ns.synchronize()\n"),
    "an array of C++": ("a.cu", "#include <cuda_runtime.h>\nint x[] = {", "12345, ", "};\nvoid f() { cudaDeviceSynchronize(); }\n"),
    "statements of C++": ("a.cu", CUDA, "a[1] = 2; ", "cudaStreamSynchronize(s); }\n"),
    "a text of C++": ("a.cu", '#include <cuda_runtime.h>\nconst char* x = "', "abcdefgh", '";\nvoid f() { cudaDeviceSynchronize(); }\n'),
    "blanks of C++": ("a.cu", CUDA, "        ", "cudaStreamSynchronize(s); }\n"),
}


def main() -> int:
    """Make, lint, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=100_000, help="of files or folders in a tree (default: 100000)")
    parser.add_argument("--megabytes", type=int, nargs="*", default=[4, 10], help="sizes of files of one line (default: 4 10)")
    parser.add_argument("--only", nargs="*", default=[], help="names of trees, or of lines")
    options = parser.parse_args()
    faults = 0
    for name, make in TREES.items():
        if not options.only or name in options.only:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "tree").mkdir()
                make(Path(folder) / "tree", options.number)
                for kind, words in (("no cache", ["--no-cache"]), ("a cache", ["--cache-dir", "kept"]), ("known", ["--cache-dir", "kept"])):
                    faults += _run(f"{name}, {kind}", Path(folder), words)
                shutil.rmtree(Path(folder) / "tree")
    for name, (file, before, repeated, behind) in LINES.items():
        if not options.only or name in options.only:
            for megabytes in options.megabytes:
                with tempfile.TemporaryDirectory() as folder:
                    (Path(folder) / "tree").mkdir()
                    number = (megabytes << 20) // len(repeated)
                    (Path(folder) / "tree" / file).write_text(before + repeated * number + behind)
                    faults += _run(f"{name}, {megabytes} MB", Path(folder), ["--no-cache"])
    return 1 if faults else 0


def _run(name: str, folder: Path, words: list[str]) -> bool:
    """Lint the tree of a folder; whether that was a fault."""
    command = [sys.executable, "-m", "streamlint", "check", "--isolated", "--output-format", "concise", *words, "tree"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "STREAMLINT_NO_CACHE": ""}
    with tempfile.TemporaryFile("w+") as errors:
        began = time.monotonic()
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = code = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - began
        errors.seek(0)
        told = errors.read()
    last = told.splitlines()[-1] if told else ""
    fault = code not in (0, 1, 2) or "internal error" in told or not told
    warnings = sum(row.startswith("warning") for row in told.splitlines())
    cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss >> (20 if sys.platform == "darwin" else 10)
    first = next((row for row in told.splitlines() if row.startswith("warning")), "")[:100]
    print(
        f"{name:<28} {cpu:7.1f} s of processor time {wall:7.1f} s {memory:6} MB  exit {code}  {last}; {warnings} warnings {first}",
        flush=True,
    )
    return fault


if __name__ == "__main__":
    sys.exit(main())
