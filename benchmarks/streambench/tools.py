"""The tools that the benchmark can ask, and which hazards their rules speak of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.streambench.pieces import BenchError
from benchmarks.streambench.readers import hotpath, lines, preflight

ROOT = Path(__file__).resolve().parents[2]
HAZARDS = tuple(f"SL{number:03}" for number in range(1, 44) if number not in {28, 30, 31})
_OWN = {code: (code,) for code in HAZARDS} | {"SL009": ("SL009", "SL033"), "SL021": ("SL021", "SL003")}
"""streamlint reports the deadlock of an extension as SL009, and an emptied cache in a training loop as SL021."""
_VLLM = "${CHECK_GPU_SYNC_PATTERNS:?is not set to the path of tools/pre_commit/check_gpu_sync_patterns.py in a checkout of vLLM}"
_READS_AND_UPLOADS = ("KP003", "KP004", "KP005", "KP013", "KP015", "KP017")
_EACH = (sys.executable, "-m", "benchmarks.streambench.lint_each", "{tree}")


@dataclass(frozen=True)
class Tool:
    """A tool: a command for a tree (``{tree}``), the hazards of its rules, its exit codes, and what makes SARIF of its words."""

    command: tuple[str, ...]
    hazards: Mapping[str, tuple[str, ...]]
    codes: frozenset[int] = field(default=frozenset({0, 1}))
    read: Callable[[str], dict[str, Any]] = json.loads


TOOLS: dict[str, Tool] = {
    "streamlint": Tool((*_EACH, "--rules", "all"), _OWN),
    "streamlint-default": Tool((*_EACH, "--rules", "default"), _OWN),
    "streamlint-widest": Tool((*_EACH, "--rules", "widest"), _OWN),
    "ruff": Tool(("ruff", "check", "--isolated", "--select", "ALL", "--output-format", "sarif", "{tree}"), {}),
    "torchfix": Tool(("torchfix", "--select", "ALL", "{tree}"), {}, read=lines),
    "semgrep": Tool(
        ("semgrep", "scan", "--metrics=off", "--config", str(ROOT / "benchmarks/peers/semgrep.yml"), "--sarif", "--quiet", "{tree}"),
        {"item-in-loop": ("SL020",), "synchronize-in-loop": ("SL021",), "non-blocking-copy": ("SL001",)},
    ),
    "torch-preflight": Tool(
        ("torch-preflight", "check", "--format", "sarif", "--no-color", "{tree}"),
        {"TG004-pin": ("SL001",), "TG007": ("SL020", "SL021"), "TG013": ("SL020",)},
        read=preflight,
    ),
    "hotpath": Tool(
        ("hotpath", "analyze", "--include-heuristics", "--format", "json", "--fail-on", "none", "{tree}"),
        {"KP002": ("SL001",), "KP011": ("SL003", "SL021")}
        | dict.fromkeys(("KP003", "KP004", "KP005", "KP013", "KP015", "KP017"), ("SL020",)),
        read=hotpath,
    ),
    "vllm": Tool(
        ("sh", "-c", f'find "$0" -name "*.py" -print0 | xargs -0 "{sys.executable}" "{_VLLM}"', "{tree}"),
        {"error": ("SL001",)},
        codes=frozenset({0, 123}),
        read=lines,
    ),
}


def ask(tool: Tool, tree: Path) -> tuple[dict[str, Any], float]:
    """What a tool says of a tree, as a SARIF log, and how many seconds it took."""
    command = [word.replace("{tree}", str(tree)) for word in tool.command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    except FileNotFoundError:
        raise BenchError(f"{command[0]} is not installed") from None
    seconds = time.perf_counter() - start
    if done.returncode not in tool.codes:
        raise BenchError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    try:
        return tool.read(done.stdout), seconds
    except (ValueError, KeyError):
        raise BenchError(f"{command[0]} printed nothing that can be read: {done.stderr.strip()[-500:]}") from None
