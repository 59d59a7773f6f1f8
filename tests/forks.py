"""Runs of the command line in forks of one process that has imported all of it, which takes an interpreter longer than most runs.

A fork is a process like any other: it has a group, streams, a folder and an environment of its own, runs the command with the words that it
is given, can be killed, and ends as interpreters do, which costs it more than many runs: only to take apart what lived in memory, and is
gone with the process, is left out. What it does not show is what comes before: imports, hash seeds, locales, limits in
which Python has to start. Tests of these begin an interpreter; with ``STREAMLINT_TESTS_FRESH=1`` all others begin one as well.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import functools
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[1]
PATHS = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
COMMAND = "import sys\nfrom streamlint.cli import main\nsys.argv[0] = 'streamlint'\nsys.exit(main())\n"
PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL
FRESH = not hasattr(os, "fork") or bool(os.environ.get("STREAMLINT_TESTS_FRESH"))
MISUSE = b"import torch\n\n\ndef f(x):\n    y = x.to('cpu', non_blocking=True)\n    return y.numpy()\n"
_WITH_OTHERS = frozenset({"server", "cluster", "verify", "litmus", "record", "__main__"})
_STREAMS = 3
_NUMBER = 4  # bytes


def listen() -> None:
    """For a process that begins: it has the signals that a terminal gives it, and dies with who began it, on Linux."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a background job of a shell, or nohup, has them ignored
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


class Fork:
    """A run that goes on, with those parts of `subprocess.Popen` that tests use."""

    def __init__(self, ask: dict[str, object], streams: Sequence[int | IO[Any] | None]) -> None:
        self.args, self.returncode = ask["words"], None
        theirs, ours = [], []
        for number, stream in enumerate(streams):
            if stream == PIPE:
                ends = os.pipe()
                theirs.append(ends[number > 0])
                ours.append(os.fdopen(ends[number == 0], "rb" if number else "wb"))
            else:
                theirs.append(_handle(number, stream))
                ours.append(None)
        self.stdin, self.stdout, self.stderr = ours
        self._told, tell = os.pipe()
        try:
            _send(_server()[0], ask, [*theirs, tell])
        finally:
            for handle in (*theirs, tell):
                os.close(handle)
        self.pid = self._number()

    def _number(self) -> int:
        data = os.read(self._told, _NUMBER)
        assert len(data) == _NUMBER, "the process that forks has ended"
        return int.from_bytes(data, "little", signed=True)

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.returncode = os.waitstatus_to_exitcode(self._number())
            os.close(self._told)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._told], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Closes its input, and gives all of its output, once nobody holds that any more and it has ended."""
        end = None if timeout is None else time.monotonic() + timeout
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()
        parts: dict[object, list[bytes]] = {self.stdout: [], self.stderr: []}
        with selectors.DefaultSelector() as selector:
            for stream in parts:
                if stream is not None:
                    selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                left = None if end is None else end - time.monotonic()
                ready = selector.select(left)
                if not ready or (left is not None and left <= 0):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    parts[key.fileobj].append(data)
                    if not data:
                        selector.unregister(key.fileobj)
        self.wait(None if end is None else max(end - time.monotonic(), 0))
        return tuple(None if stream is None else b"".join(parts[stream]) for stream in (self.stdout, self.stderr))  # type: ignore[return-value]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Fork:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self.wait()


Process = Fork | subprocess.Popen[bytes]


def begin(
    folder: Path,
    *words: str,
    script: str = COMMAND,
    stdin: int | IO[Any] | None = DEVNULL,
    stdout: int | IO[Any] | None = PIPE,
    stderr: int | IO[Any] | None = PIPE,
    **more: str | None,
) -> Process:
    """A run in a folder, which leads a group of its own: of the command, or of a script, with these words.

    The environment is this process's, with ``more`` in it; what is None there is taken out.
    """
    streams, all_of_it = [stdin, stdout, stderr], {**os.environ, "PYTHONPATH": PATHS, **more}
    environment = {name: text for name, text in all_of_it.items() if text is not None}
    if not FRESH:
        return Fork({"folder": str(folder), "words": words, "script": script, "environment": environment}, streams)
    command = [sys.executable, *(("-m", "streamlint") if script == COMMAND else ("-c", script)), *words]
    before = listen if hasattr(os, "fork") else None
    return subprocess.Popen(command, -1, None, *streams, before, cwd=folder, env=environment, start_new_session=before is not None)


def run(
    folder: Path, *words: str, input: bytes = b"", text: bool = True, timeout: float = 120, **more: Any
) -> subprocess.CompletedProcess[Any]:
    """The same, once it has ended; none of its group outlives a test that it is too slow for."""
    with begin(folder, *words, **{"stdin": PIPE, **more}) as process:
        try:
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(input)
            out, errors = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise
    said = [one.decode() if text and one is not None else one for one in (out, errors)]
    return subprocess.CompletedProcess(words, process.wait(), *said)


@functools.cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The process that forks, and our end of what it hears; it ends when this is closed."""
    ours, theirs = socket.socketpair()
    environment = {**os.environ, "PYTHONPATH": PATHS, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, __file__, str(theirs.fileno())]
    process = subprocess.Popen(command, env=environment, stdin=DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True)
    theirs.close()
    atexit.register(lambda: (ours.close(), process.wait()))
    return ours, process


def _handle(number: int, stream: int | IO[Any] | None) -> int:
    """A handle to give away: what is meant by a stream, as `subprocess` has it."""
    if stream == DEVNULL:
        return os.open(os.devnull, os.O_RDWR)
    if stream is None:
        return os.dup(number)
    return os.dup(stream if isinstance(stream, int) else stream.fileno())


def _send(to: socket.socket, ask: dict[str, object], handles: Sequence[int]) -> None:
    data = json.dumps(ask).encode()
    socket.send_fds(to, [len(data).to_bytes(_NUMBER, "little")], list(handles))
    to.sendall(data)


# The process that forks ---------------------------------------------------------------------------------------------------------


def _heard(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """What is asked for next, with its handles: three streams, and where to tell what becomes of it; None where nobody asks any more."""
    head, ancillary, *_ = control.recvmsg(_NUMBER, socket.CMSG_SPACE((_STREAMS + 1) * array.array("i").itemsize))
    if not head:
        return None
    handles = array.array("i")
    for _, _, data in ancillary:
        handles.frombytes(data)
    size, parts = int.from_bytes(head, "little"), b""
    while len(parts) < size:
        parts += control.recv(size - len(parts))
    return json.loads(parts), list(handles)


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork for each who asks. Comes back in a fork, with what it is to do; and when nobody asks any more."""
    awake, wake = os.pipe()
    for end in (awake, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    tell: dict[int, int] = {}
    while True:
        ready = select.select([control, awake], [], [])[0]
        if awake in ready:
            os.read(awake, 1 << 10)
            _reap(tell)
        if control not in ready:
            continue
        heard = _heard(control)
        if heard is None:
            return None
        ask, handles = heard
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            os.setsid()
            listen()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _say(handles[_STREAMS], os.getpid())
            for handle in (awake, wake, handles[_STREAMS], *tell.values()):
                os.close(handle)
            return {**ask, "streams": handles[:_STREAMS]}
        for handle in handles[:_STREAMS]:
            os.close(handle)
        tell[child] = handles[_STREAMS]


def _reap(tell: dict[int, int]) -> None:
    while tell:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        handle = tell.pop(child)
        _say(handle, status)
        os.close(handle)


def _say(handle: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # who asked for it is gone
        os.write(handle, number.to_bytes(_NUMBER, "little", signed=True))


def _become(ask: dict[str, Any]) -> None:
    """What an interpreter is when it begins to run a script."""
    for number, stream in enumerate(ask["streams"]):
        os.dup2(stream, number)
        os.close(stream)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before = getattr(sys, name)
        stream = os.fdopen(number, before.mode, encoding=before.encoding, errors=before.errors, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(ask["folder"])
    os.environ.clear()
    os.environ.update(ask["environment"])
    time.tzset()
    sys.argv = ["-c", *ask["words"]]


def _run(script: str) -> None:
    """Run a script, and end with its code, all said and done. What an interpreter says of any other end is left to it."""
    code: object = None
    try:
        exec(compile(script, "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    except SystemExit as error:
        code = error.code
        if not isinstance(code, int | None):
            raise
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            try:
                stream.flush()
            except OSError:
                sys.exit(code)  # which says so, once more
    os._exit((code or 0) & 0xFF)


def _import_all() -> None:
    """What a run imports and reads when it first needs it, each fork would anew. Others' packages come with a few rooms alone."""
    import importlib
    import multiprocessing.connection  # noqa: F401
    import pkgutil

    import streamlint
    from streamlint.config.settings import Resolver, Settings
    from streamlint.runner import linter

    for module in pkgutil.walk_packages(streamlint.__path__, "streamlint."):
        if not any(part in _WITH_OTHERS for part in module.name.split(".")):
            importlib.import_module(module.name)
    for text, name in ((MISUSE, "a.py"), (b"void f() { cudaDeviceSynchronize(); }\n", "a.cu")):
        report = linter.run_text(text, name, Resolver(Settings()), fixes=True)
        assert [finding for finding in report.findings if finding.fix] or name == "a.cu", "the fixes of a finding are tried"


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as control:
        del sys.path[0]  # the folder of this file, which comes again behind the package
        _import_all()
        import gc

        gc.collect()
        gc.freeze()  # or each fork would copy what it only looks at
        asked = _serve(control)
    if asked is not None:
        _become(asked)
        _run(asked["script"])
