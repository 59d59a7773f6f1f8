"""Questions to git: of one repository, bounded in time and size, and with nothing started that the repository names."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.support import guard
from streamlint.support.errors import ConfigError

if TYPE_CHECKING:
    from typing import IO

# A repository's own configuration may name programs for git to start. What is linted may be anybody's: none of them is started.
HARMLESS = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null"),
    *("core.untrackedCache=false", "diff.external=", "protocol.allow=never", "diff.submodule=short", "core.quotePath=true"),
)
SECONDS = 60.0
MOST_BYTES = 1 << 28  # of an answer
# The environment of a hook names the repository that it belongs to; what is asked about is named by its folder.
_OTHERS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_LITERAL_PATHSPECS")


class GitError(ConfigError):
    """git cannot answer."""


def ask(root: Path, *words: str) -> str:
    """What git says of the repository in a folder. Raises GitError."""
    settings = [*HARMLESS, *(f"{key}=" for key in _filters(root))]
    return _output(root, *(word for setting in settings for word in ("-c", setting)), *words)


def _filters(root: Path) -> list[str]:
    """The keys that name the programs through which git would pass files on their way to a comparison."""
    try:
        found = _output(root, "config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$")
    except _Refusal:  # there are none
        return []
    return sorted({key for key in found.split("\0") if key and "=" not in key and "\n" not in key})


class _Refusal(GitError):
    """It ended, and said no."""


def _output(root: Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in _OTHERS}
    environment |= {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "--no-pager", "-C", str(root), *words]
    pipe = subprocess.PIPE
    try:
        child = subprocess.Popen(command, env=environment, start_new_session=True, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    except OSError as error:
        reason = "git is not installed" if isinstance(error, FileNotFoundError) else f"git cannot be started: {error.strerror}"
        raise GitError(f"--since: {reason}") from None
    try:
        with guard.ending_first(lambda: _end(child)):  # it has a session of its own, which no signal to ours reaches
            out, errors = _read(child)
    finally:
        _end(child)  # with whatever it started
    if child.returncode:
        lines = errors.decode(errors="replace").strip().splitlines()
        raise _Refusal(f"--since: {lines[0] if lines else 'git failed'}")
    return out.decode("utf-8", "surrogateescape")


def _read(child: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """All that it writes, until it ends."""
    found: list[bytearray] = [bytearray(), bytearray()]

    def collect(stream: IO[bytes], held: bytearray) -> None:
        while len(held) <= MOST_BYTES and (data := os.read(stream.fileno(), 1 << 16)):
            held += data

    assert child.stdout is not None
    assert child.stderr is not None
    readers = [threading.Thread(target=collect, args=pair, daemon=True) for pair in zip((child.stdout, child.stderr), found, strict=True)]
    end = time.monotonic() + SECONDS
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(max(end - time.monotonic(), 0.0))
    if any(len(held) > MOST_BYTES for held in found):
        raise GitError(f"--since: git says more than {MOST_BYTES >> 20} MiB")
    try:
        if any(reader.is_alive() for reader in readers):
            raise subprocess.TimeoutExpired("git", SECONDS)
        child.wait(max(end - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        raise GitError(f"--since: git gave no answer within {SECONDS:.0f} s") from None
    return bytes(found[0]), bytes(found[1])


def _end(child: subprocess.Popen[bytes]) -> None:
    """End it and what it started; where all of that has ended, nothing happens."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.wait()
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
