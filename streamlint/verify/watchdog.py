"""A child process with a deadline: its answers come one by one, and silence is an answer too."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any

Message = dict[str, Any]
_KILL_WAIT_S = 10.0


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

    def kill(self) -> None:
        """Kill the process and all that it started. A process stuck in the driver may outlive the wait; it is then left behind."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_WAIT_S)
        self._errors.close()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._reader.join(1.0)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()

    def epitaph(self) -> str:
        """How the child ended, and the last line that it wrote on standard error."""
        try:
            code: int | None = self._process.wait(_KILL_WAIT_S)
        except subprocess.TimeoutExpired:
            code = None
        if code is None:
            how = "closed its output but did not end"
        elif code < 0:
            how = f"died of {_signal_name(-code)}"
        else:
            how = f"ended with status {code} and without an answer"
        said = self.garbage[-1] if self.garbage else self._last_error()
        return f"the child {how}" + (f": {said}" if said else "")

    def _last_error(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
