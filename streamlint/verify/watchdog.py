"""A child process with a deadline: its answers come one by one, and silence is an answer too."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from streamlint.support.guard import signal_name
from streamlint.verify import stacks
from streamlint.verify.stacks import Stack

Message = dict[str, Any]
_KILL_WAIT_S = 10.0
_LAST_WORDS_S = 1.0  # for the child's own helpers to clear up behind it
_DUMP_S = 5.0  # for a child to write its stacks
_QUIET_S = 0.5  # without a further byte, after which they are all there
_TAIL = 3  # lines of standard error that a report shows
STACKS = signal.SIGUSR1 if hasattr(signal, "SIGUSR1") else None  # asks a child for its stacks (``faulthandler.register``)


def program(module: str) -> list[str]:
    """The command that runs a module of ours. Nothing is looked for in the current folder, which may be anybody's."""
    if hasattr(sys.flags, "safe_path"):
        return [sys.executable, "-P", "-m", module]
    code = f"import sys; del sys.path[0]; import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return [sys.executable, "-c", code]


class Child:
    """Runs a command in a process group of its own and reads JSON objects, one a line, from its standard output."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None, *, listens: bool = False) -> None:
        """``listens``: the child reads requests from its standard input (:meth:`ask`)."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self.garbage: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            text = line.decode("utf-8", "replace").strip()
            try:
                message = json.loads(text)
            except ValueError:
                message = None
            if isinstance(message, dict) and "event" in message:
                self._messages.put(message)
            elif text:
                self.garbage.append(text[:200])
        self._messages.put(None)

    def ask(self, request: Message) -> None:
        """Send a request. A child that died is noticed by the next :meth:`read`."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def read(self, seconds: float) -> Message | None:
        """The next answer; ``None`` once the child has closed its output. ``TimeoutError`` after that many seconds of silence."""
        try:
            return self._messages.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None

    def stacks(self) -> list[Stack]:
        """Ask the child where its threads are. It answers also with the GIL held or in a call that hangs; one that was killed does not."""
        if STACKS is None or self._process.poll() is not None:
            return stacks.parse(self._said())[0]
        before = len(self._said())
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(STACKS)
        end = time.monotonic() + _DUMP_S
        said, since = before, time.monotonic()
        while time.monotonic() < end:  # until it has written, and has stopped writing: on a busy machine it pauses between two threads
            time.sleep(0.05)
            now = len(self._said())
            if now != said:
                said, since = now, time.monotonic()
            elif now > before and time.monotonic() - since >= _QUIET_S:
                break
        return stacks.parse(self._said()[before:])[0]

    def kill(self) -> None:
        """Kill the process and all that it started. A process stuck in the driver may outlive the wait; it is then left behind.

        The child goes first; its helpers are asked, and given a moment, since Python's resource tracker then removes what was left in
        shared memory. It ignores SIGTERM.
        """
        self._signal_group(None, leader=signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_WAIT_S)
        end = time.monotonic() + _LAST_WORDS_S
        if self._signal_group(signal.SIGTERM):
            while time.monotonic() < end and self._signal_group(0):
                time.sleep(0.01)
            self._signal_group(signal.SIGKILL)
        self._errors.close()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._reader.join(1.0)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()

    def _signal_group(self, number: int | None, leader: int | None = None) -> bool:
        """Signal the child, its group, or both; whether there was anyone left to hear it."""
        try:
            if leader is not None and self._process.poll() is None:
                os.kill(self._process.pid, leader)
            if number is not None:
                os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def epitaph(self) -> str:
        """How the child ended, and the last lines that it wrote on standard error."""
        try:
            code: int | None = self._process.wait(_KILL_WAIT_S)
        except subprocess.TimeoutExpired:
            code = None
        if code is None:
            how = "closed its output but did not end"
        elif code < 0:
            how = f"died of {signal_name(-code)}"
        else:
            how = f"ended with status {code} and without an answer"
        said = self.garbage[-1] if self.garbage else self._last_words()
        return f"the child {how}" + (f": {said}" if said else "")

    def _last_words(self) -> str:
        _, lines = stacks.parse(self._said())
        return " / ".join(line[:300] for line in lines[-_TAIL:])

    def _said(self) -> str:
        """What is on standard error. The child writes at the end of the same file: it is read elsewhere, its place left alone."""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode("utf-8", "replace")
