"""Examples as whole programs, and what the linter says of them: the output on the site is the linter's own."""

from __future__ import annotations

import ast
import builtins
import difflib
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from streamlint.checks.base import registry
from streamlint.config.options import Source
from streamlint.config.settings import Resolver, Settings
from streamlint.findings import Report
from streamlint.findings.measured import best
from streamlint.report import View, render
from streamlint.runner.linter import run_text
from streamlint.runner.repairs import repairs
from streamlint.verify import evidence

FENCE = re.compile(r"^```(?P<language>python|cuda)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
SUFFIXES = {"python": ".py", "cuda": ".cu"}
# A block of Python on a rule's page is the body of a function: names that it does not bind are the parameters, except for these, which
# both blocks of the page are given where either names one. A block of C++ is a file that includes the runtime's header.
LIBRARIES = {
    "DataLoader": "from torch.utils.data import DataLoader",
    "cp": "import cupy as cp",
    "cuda": "from numba import cuda",
    "np": "import numpy as np",
    "queue": "import queue",
    "threading": "import threading",
    "torch": "import torch",
}


def blocks(text: str) -> list[tuple[str, str]]:
    """The blocks of code in a text: language and body."""
    return [(fence["language"], fence["body"]) for fence in FENCE.finditer(text)]


def unbound(body: str) -> list[str]:
    """The names that a block of Python uses and does not bind, in order."""
    nodes = list(ast.walk(ast.parse(body)))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    used = [node.id for node in nodes if isinstance(node, ast.Name)]
    return [name for name in dict.fromkeys(used) if name not in bound and not hasattr(builtins, name)]


def whole(language: str, body: str, page: str) -> Source:
    """A file that holds the block; ``page`` is the text of all blocks beside it."""
    if language == "cuda":
        return Source("example.cu", f"#include <cuda_runtime.h>\n\n{body}", language)
    named = {name for other, text in blocks(page) if other == "python" for name in unbound(text)}
    imports = "\n".join(line for name, line in LIBRARIES.items() if name in named)
    parameters = ", ".join(name for name in unbound(body) if name not in LIBRARIES)
    return Source("example.py", f"{imports}\n\n\ndef example({parameters}):\n{textwrap.indent(body, '    ')}", language)


def lint(source: Source, codes: Iterable[str] = ()) -> Report:
    """What ``streamlint check`` finds in a program with these rules besides those that are on, and the fixes that hold."""
    settings = Settings.of(extend_select=list(codes))
    return run_text(source.text.encode(), source.path, Resolver(settings), fixes=True)


def selected(*codes: str) -> str:
    """The option that a command line needs for rules that are not on by default."""
    more = [code for code in codes if registry()[code].default != "on"]
    return f" --extend-select {','.join(more)}" if more else ""


def output(report: Report) -> str:
    """What ``streamlint check`` prints of a report, with the evidence that the package brings."""
    codes = {finding.code for finding in report.findings}
    known = {code: record for code in codes if (record := best(shipped(code)))}
    return render("full", View(report, evidence=known)).rstrip() + "\n"


def mended(report: Report) -> str:
    """What ``--fix --unsafe-fixes`` would change, as a patch; empty where no fix is offered."""
    step = repairs(report, True)
    patches = (
        difflib.unified_diff(report.texts[file].splitlines(), text.splitlines(), file, file, lineterm="")
        for file, text in sorted(step.texts.items())
    )
    return "".join(f"{line}\n" for patch in patches for line in patch)


def shipped(code: str) -> tuple[dict[str, Any], ...]:
    """The evidence of a rule that the package brings: what a machine's user verified is not published."""
    return tuple(dict(record) for record in evidence.load(code, Path(__file__).parent / "no-such-folder"))
