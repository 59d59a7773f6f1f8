"""Running a program as `python` would, recorded: ``python -m streamlint.record [-o FILE] [--root DIR] (SCRIPT | -m MODULE) [ARG]...``."""

from __future__ import annotations

import os
import runpy
import sys
import types

from streamlint import TYPE_CHECKING
from streamlint.support.errors import StreamlintError
from streamlint.trace.recording import children
from streamlint.trace.recording.cupti import require_gpu
from streamlint.trace.recording.recorder import start_until_exit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

USAGE = """\
usage: python -m streamlint.record [-o FILE] [--root DIR] [--share PERCENT] (SCRIPT | -m MODULE) [ARG]...

Run a Python program and record its CUDA calls, their lines and the GPU's work.

  -o FILE, --output FILE  where to write the recording (default: run.slt)
  --root DIR              the folder of your code (default: all that is not installed)
  --share PERCENT         record parts of two seconds, so much of the time, and leave the program alone between them (default: 100%)
"""
OUTPUT = "run.slt"
FAILED = 2
_RUNPY = (f"{os.sep}runpy.py", "<frozen runpy>")


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments name. Returns the exit code; what the program raises is shown as Python shows it."""
    words, options = list(arguments), {"--output": OUTPUT, "--root": "", "--share": "100"}
    while len(words) > 1 and words[0] in ("-o", *options):
        options["--output" if words[0] == "-o" else words[0]] = words[1]
        del words[:2]
    if not words or words[0] in ("-h", "--help") or (words[0].startswith("-") and (words[0] != "-m" or len(words) == 1)):
        is_help = bool(words) and words[0] in ("-h", "--help")
        print(USAGE, end="", file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else FAILED
    if words[0] != "-m" and not os.path.isfile(words[0]):
        print(f"streamlint: {words[0]}: no such file", file=sys.stderr)
        return FAILED
    try:
        _record(options["--output"], options["--root"], share_of(options["--share"]))
    except StreamlintError as error:
        print(f"streamlint: {error}", file=sys.stderr)
        return FAILED
    _show_as_python()
    if words[0] == "-m":
        _module(words[1:])
    else:
        _script(words)
    return 0


def _record(output: str, root: str, share: float) -> None:
    """Record until the program ends; its child processes as well, if all of it is recorded. Raises StreamlintError."""
    require_gpu()
    recorder = start_until_exit(output, root, share)
    if share == 1:
        children.follow(output, root, recorder.session)


def share_of(text: str) -> float:
    """``25%``, or ``25``, as a share. Raises StreamlintError where it is none between 1 and 100 %."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not 1 <= percent <= 100:
        raise StreamlintError(f"--share: expected a percentage from 1% to 100%, not '{text}'")
    return percent / 100


def _script(words: list[str]) -> None:
    path = words[0]
    sys.argv[:] = words
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module  # as multiprocessing and pickle expect it
    with open(path, "rb") as file:
        code = compile(file.read(), os.path.abspath(path), "exec", dont_inherit=True)
    exec(code, module.__dict__)


def _module(words: list[str]) -> None:
    sys.argv[:] = words
    sys.path[0] = os.getcwd()
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def _show_as_python() -> None:
    """Have what the program raises shown without the frames that started it; all else is left to Python: exit codes, Ctrl-C."""
    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        trace = _trimmed(trace)
        shown(kind, error.with_traceback(trace), trace)

    sys.excepthook = hook


def _trimmed(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first frame on: what stands below this file, and below `runpy` where a module was run."""
    rows = []
    while trace is not None:
        rows.append(trace)
        trace = trace.tb_next
    files = [row.tb_frame.f_code.co_filename for row in rows]
    start = len(files) - files[::-1].index(__file__) if __file__ in files else 0
    while start < len(files) and files[start].endswith(_RUNPY):
        start += 1
    return rows[start] if start < len(rows) else None
