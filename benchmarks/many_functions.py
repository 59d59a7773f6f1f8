"""What a generated file of many small functions takes, beside mypy on the same file, and beside one of half as many.

    python benchmarks/many_functions.py [--functions 1000 2000 4000] [--rounds 3] [--without-mypy]

Prints processor seconds, the medians of the rounds. ``doubled`` is the time of a row over that of the row before it, had that one
half as many functions: at most 2.3 where time is linear. ``of mypy`` is the time over that of mypy, in the same round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FUNCTIONS = (
    '''

def add_{n}(a, b):
    """The sum of two numbers and an offset."""
    total = a + b * {n}
    return total
''',
    """

def scale_{n}(values, factor=2):
    result = []
    for value in values:
        result.append(value * factor)
    return result
""",
    """

def call_{n}(x):
    if x is None:
        return scale_{before}([1, 2, {n}])
    return scale_{before}(x)
""",
    """

def text_{n}(name):
    parts = name.split(".")
    return parts[0] + "-{n}" if parts else name
""",
    """

def move_{n}(x):
    x = x.to("cuda")
    return x.sum() * {n}
""",
)
PYTHON = (sys.executable, "-m")
CHECK = (*PYTHON, "streamlint", "check", "--isolated", "--no-cache", "-j1", "--exit-zero", "--output-format", "concise")
MYPY = (*PYTHON, "mypy", "--config-file=", "--cache-dir", os.devnull, "--ignore-missing-imports")


def source(count: int) -> str:
    """A module of so many functions, of which a fifth moves a tensor and a fifth calls the one before it."""
    return "import torch\n" + "".join(FUNCTIONS[n % len(FUNCTIONS)].format(n=n, before=n - 1) for n in range(count))


def main(words: list[str]) -> int:
    """A row for each number of functions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, nargs="+", default=[1000, 2000, 4000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-mypy", action="store_true")
    options = parser.parse_args(words)
    print(f"{'functions':>9}{'streamlint s':>14}{'doubled':>9}{'mypy s':>9}{'of mypy':>9}")
    before: tuple[int, float] = (0, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        for count in options.functions:
            path = Path(folder, f"many_{count}.py")
            path.write_text(source(count), encoding="utf-8")
            rounds = [(_seconds(CHECK, path), 0.0 if options.without_mypy else _seconds(MYPY, path)) for _ in range(options.rounds)]
            own, other = (statistics.median(times) for times in zip(*rounds, strict=True))
            doubled = f"{own / before[1]:.2f}" if before[0] * 2 == count else ""
            ratio = f"{statistics.median(mine / theirs for mine, theirs in rounds):.2f}" if other else ""
            print(f"{count:>9}{own:>14.2f}{doubled:>9}{other:>9.2f}{ratio:>9}", flush=True)
            before = count, own
    return 0


def _seconds(command: tuple[str, ...], path: Path) -> float:
    before = os.times()
    subprocess.run([*command, str(path)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=path.parent)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
