"""What fixes cost: a file with a fixable finding in each function beside one of the same functions with none.

    python benchmarks/many_fixes.py [--functions 400] [--rounds 5]

Prints processor seconds, the medians of the rounds, and their ratio, for formats that show fixes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FUNCTION = """

def fetch_{number}(x):
    host = x.to("cpu", non_blocking=True)
{wait}    return host.numpy()
"""
WAIT = "    torch.cuda.current_stream().synchronize()\n"
CHECK = (sys.executable, "-m", "streamlint", "check", "--isolated", "--no-cache", "-j1", "--exit-zero")


def main(words: list[str]) -> int:
    """A row for each format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        made = [Path(folder, name) for name in ("clean.py", "found.py")]
        for path, wait in zip(made, (WAIT, ""), strict=True):
            path.write_text(source(options.functions, wait), encoding="utf-8")
        print(f"{'format':<10}{'clean s':>9}{'found s':>9}{'ratio':>7}")
        for name in ("full", "concise", "json"):
            rounds = [[_seconds(path, name) for path in made] for _ in range(options.rounds)]
            clean, found = (statistics.median(times) for times in zip(*rounds, strict=True))
            print(f"{name:<10}{clean:>9.2f}{found:>9.2f}{found / clean:>7.2f}")
    return 0


def source(count: int, wait: str = "") -> str:
    """A module of so many functions, each with a finding unless they wait."""
    return "import torch\n" + "".join(FUNCTION.format(number=number, wait=wait) for number in range(count))


def _seconds(path: Path, name: str) -> float:
    before = os.times()
    subprocess.run([*CHECK, "--output-format", name, str(path)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
