"""The tools that the benchmark can ask, and which hazards their rules speak of."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.streambench.pieces import BenchError
from benchmarks.streambench.sarif import log, result

ROOT = Path(__file__).resolve().parents[2]
HAZARDS = tuple(f"SL{number:03}" for number in range(1, 44) if number not in {28, 30, 31})
_OWN = {code: (code,) for code in HAZARDS} | {"SL009": ("SL009", "SL033"), "SL021": ("SL021", "SL003")}
"""streamlint reports the deadlock of an extension as SL009, and an emptied cache in a training loop as SL021."""
_LINE = re.compile(r"^(?P<file>[^:\n]+):(?P<row>\d+):\d+: (?P<rule>\w+) (?P<text>.*)$", re.MULTILINE)
_EACH = (sys.executable, "-m", "benchmarks.streambench.lint_each", "{tree}")


@dataclass(frozen=True)
class Tool:
    """A tool: a command that prints SARIF of a tree (``{tree}``), the hazards of its rules, and its exit codes."""

    command: tuple[str, ...]
    hazards: Mapping[str, tuple[str, ...]]
    codes: frozenset[int] = field(default=frozenset({0, 1}))
    lines: bool = False
    """Whether it prints `FILE:ROW:COLUMN: RULE message` instead of SARIF."""


TOOLS: dict[str, Tool] = {
    "streamlint": Tool((*_EACH, "--rules", "all"), _OWN),
    "streamlint-default": Tool((*_EACH, "--rules", "default"), _OWN),
    "streamlint-widest": Tool((*_EACH, "--rules", "widest"), _OWN),
    "ruff": Tool(("ruff", "check", "--isolated", "--select", "ALL", "--output-format", "sarif", "{tree}"), {}),
    "torchfix": Tool(("torchfix", "--select", "ALL", "{tree}"), {}, lines=True),
    "semgrep": Tool(
        ("semgrep", "scan", "--metrics=off", "--config", str(ROOT / "benchmarks/peers/semgrep.yml"), "--sarif", "--quiet", "{tree}"),
        {"item-in-loop": ("SL020",), "synchronize-in-loop": ("SL021",), "non-blocking-copy": ("SL001",)},
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
    if tool.lines:
        results = [result(match["rule"], match["text"], match["file"], int(match["row"])) for match in _LINE.finditer(done.stdout)]
        return log(command[0], results), seconds
    try:
        return json.loads(done.stdout), seconds
    except ValueError:
        raise BenchError(f"{command[0]} printed no SARIF: {done.stderr.strip()[-500:]}") from None
