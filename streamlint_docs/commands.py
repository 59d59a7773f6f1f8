"""The page of the command line: each command's ``--help``, as it prints it."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from unittest import mock

from streamlint import cli

HEAD = """# Command line

`streamlint COMMAND --help` says what stands here. Exit codes of `check`: 0 clean, 1 findings, 2 the linter could not do its work (a wrong
option or setting, a path that does not exist, no file to lint). Findings go to standard output, the rest to standard error.
`streamlint generate-shell-completion bash` (also `zsh`, `tcsh`, `fish`, `powershell`) prints a completion script.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD.rstrip(), f"```text\n{told()}```"]
    for name in cli.COMMANDS:
        parts.append(f"## streamlint {name}\n\n```text\n{told(name)}```")
    return "\n\n".join(parts) + "\n"


def told(*words: str) -> str:
    """What ``--help`` prints, 80 columns wide."""
    with _captured() as stream:
        assert cli.main([*words, "--help"]) == 0
    return stream.getvalue()


@contextlib.contextmanager
def _captured() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"}), contextlib.redirect_stdout(stream):
        yield stream
