"""The server's side of the child: jobs are sent, answers are awaited, and a child that died is replaced."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import queue
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from streamlint.server import child as process
from streamlint.server.jobs import Answer, Job


class Died(Exception):
    """The child died over a job."""


class Desk:
    """One child, and the jobs that it has not answered."""

    def __init__(self, greet: Callable[[], None], first: subprocess.Popen[bytes] | None = None) -> None:
        self._greet = greet  # sends what every new child must know
        self._first = first  # a child that is started already
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._outgoing: queue.SimpleQueue[tuple[int, Job]] = queue.SimpleQueue()

    async def ask(self, job: Job) -> Answer:
        """The answer to a job. Raises Died."""
        self._ensure()
        return await self._post(job)

    def tell(self, job: Job) -> asyncio.Future[Answer]:
        """Send a job whose answer nobody needs to wait for."""
        self._ensure()
        return self._post(job)

    def close(self) -> None:
        """Let the child go."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def _ensure(self) -> None:
        if self._child is not None:
            if self._child.poll() is None:
                return
            self._lost(self._child)
        self._child = child = self._first or process.start()
        self._first = None
        self._outgoing = queue.SimpleQueue()
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(child, loop), daemon=True).start()
        threading.Thread(target=_write, args=(child, self._outgoing), daemon=True).start()
        self._greet()

    def _post(self, job: Job) -> asyncio.Future[Answer]:
        number = next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._outgoing.put((number, job))
        return future

    def _listen(self, child: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop) -> None:
        assert child.stdout is not None
        while True:
            try:
                answer: Any = pickle.load(child.stdout)
            except (EOFError, OSError, pickle.UnpicklingError):
                break
            if not _call(loop, self._resolve, answer):
                return
        child.wait()
        _call(loop, self._lost, child)

    def _resolve(self, answer: Answer) -> None:
        future = self._waiting.pop(answer.number, None)
        if future is not None and not future.done():
            future.set_result(answer)

    def _lost(self, child: subprocess.Popen[bytes]) -> None:
        if child is not self._child:
            return
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(Died(f"the linting process ended with {child.returncode}"))
                future.exception()  # nobody has to look


def _write(child: subprocess.Popen[bytes], jobs: queue.SimpleQueue[tuple[int, Job]]) -> None:
    """Write in a thread: a child that is busy must not hold up the loop."""
    assert child.stdin is not None
    try:
        while True:
            pickle.dump(jobs.get(), child.stdin)
            child.stdin.flush()
    except (OSError, ValueError):  # it is gone: who listens to it will say so
        return


def _call(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *arguments: object) -> bool:
    try:
        loop.call_soon_threadsafe(what, *arguments)
    except RuntimeError:  # the loop is closed: the server ends
        return False
    return True
