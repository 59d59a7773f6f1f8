"""The side of a run that hands files to a Dask cluster and hears what came of them."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import time
import uuid
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from streamlint.runner.cluster import tasks
from streamlint.runner.cluster.job import Answer, Answers, Job, made_of
from streamlint.support.errors import StreamlintError

SECONDS = 10.0  # within which a scheduler answers, and has a worker
VARIABLE = "STREAMLINT_SCHEDULER_SECONDS"
HANDS = 1  # a thread: the facts of the program are solved anew for each

Hand = list[str]
Submit = Callable[[Hand], "Future[dict[str, Answer | str]]"]


class Cluster:
    """A Dask cluster that runs the same streamlint.

    Raises StreamlintError: Dask is not installed, no scheduler answers, it has no workers, or they run something else.
    """

    def __init__(self, address: str) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from distributed import Client  # optional: Dask
        except ImportError:
            raise StreamlintError("--executor dask needs a package that is not here: pip install 'streamlint[dask]'") from None
        warnings.filterwarnings("ignore", module=r"(?:distributed|dask)\b")
        for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in ("distributed", "tornado", "asyncio")]:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # our messages say what matters
        self._address, limit = address, _seconds()
        self._names: dict[str, str] = {}
        self._executors: dict[str, Any] = {}
        try:
            connect: Any = Client
            self._client = connect(address, timeout=limit, set_as_default=False)
        except Exception as error:
            why = "" if isinstance(error, OSError) else f" ({error})"
            raise StreamlintError(f"no Dask scheduler answers at {address} within {limit:g} s{why}") from None
        try:
            self._client.wait_for_workers(1, timeout=limit)
        except Exception:
            raise StreamlintError(f"the Dask scheduler at {address} has no workers") from None
        self._demand_ourselves()

    def _demand_ourselves(self) -> None:
        """Workers with another streamlint find other things."""

        def ask() -> tuple[str, str]:  # travels as code: there may be no streamlint
            try:
                from streamlint.runner.cluster.job import made_of  # worker: runs where there may be no streamlint
            except ImportError:
                try:
                    import streamlint  # worker: the same
                except ImportError:
                    return "", ""
                return streamlint.__version__, ""
            return made_of()

        ours = made_of()
        said: dict[str, Any] = self._client.run(ask, on_error="return")
        for worker, theirs in sorted(said.items()):
            if isinstance(theirs, BaseException) or tuple(theirs) == ours:  # one that just died is not asked
                continue
            what = f"has streamlint {theirs[0]}" if theirs[0] else "has no streamlint"
            if theirs[0] == ours[0]:
                what += " of other code, or with another Python or other parsers"
            raise StreamlintError(f"the Dask worker {worker} {what}, this is streamlint {ours[0]}: install the same there")

    def answers(self, job: Job, names: Sequence[str], size: Callable[[str], int]) -> Answers:
        """What workers say of each name, as it comes."""
        blob = pickle.dumps(zlib.compress(pickle.dumps(job), 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is large
            held = self._client.submit(tasks.same, blob, pure=False)
        executor, key = self._client.get_executor(pure=False), uuid.uuid4().hex
        threads = sum(self._client.nthreads().values()) or 1
        try:
            yield from gather(lambda hand: executor.submit(tasks.work, held, key, hand), dealt(names, size, threads), self._watch())
        finally:
            with contextlib.suppress(Exception):
                executor.shutdown(wait=False)

    def workers(self) -> dict[str, str] | None:
        """The names of the workers by their addresses; None while the scheduler does not answer."""
        try:
            if self._client.status != "running":
                return None
            there = list(self._client.nthreads())
            new = [worker for worker in there if worker not in self._names]
            if new:
                said = self._client.run(lambda dask_worker: str(dask_worker.name), workers=new, on_error="ignore")
                self._names.update(said)
        except Exception:
            return None
        return {worker: self._names.get(worker, worker) for worker in there}

    def submit(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have one worker call a function, and no other."""
        if worker not in self._executors:
            self._executors[worker] = self._client.get_executor(workers=[worker], allow_other_workers=False, pure=False)
        future: Future[Any] = self._executors[worker].submit(function, *arguments)
        return future

    def patience(self) -> float:
        """For how long a scheduler may be silent."""
        return _seconds()

    def _watch(self) -> Callable[[], None]:
        """Raises if the cluster has been gone for a while."""
        limit, since = _seconds(), time.monotonic()

        def look() -> None:
            nonlocal since
            alive = self._client.status == "running"
            with contextlib.suppress(Exception):
                if alive and self._client.nthreads():
                    since = time.monotonic()
            if time.monotonic() - since > limit:
                what = "has no workers any more" if alive else "does not answer any more"
                raise StreamlintError(f"the Dask scheduler at {self._address} {what}")

        return look

    def close(self) -> None:
        """Take leave of the scheduler."""
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)


def dealt(names: Sequence[str], size: Callable[[str], int], threads: int) -> list[Hand]:
    """Names in hands of about the same work, the largest first in each."""
    ordered = sorted(names, key=lambda name: (-size(name), name))
    count = min(len(ordered), threads * HANDS)
    return [ordered[number::count] for number in range(count)]


def gather(submit: Submit, hands: list[Hand], watch: Callable[[], None]) -> Iterator[tuple[str, Answer | str]]:
    """The answers of all hands. One that fails is repeated name by name, so that only the file that ends workers is lost."""
    waiting = {submit(hand): hand for hand in hands}
    while waiting:
        done, _ = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
        watch()
        for future in done:
            hand = waiting.pop(future)
            if future.cancelled():
                raise StreamlintError("the Dask scheduler gave up the work: was it restarted?")
            error = future.exception()
            if error is None:
                yield from future.result().items()
            elif len(hand) > 1:
                waiting.update({submit([name]): [name] for name in hand})
            else:
                yield hand[0], _why_left_out(error)


def _why_left_out(error: BaseException) -> str:
    """Why a file is left out. What has nothing to do with the file ends the run."""
    if type(error).__name__ == "KilledWorker":
        return "left out: Dask workers ended while they looked at it"
    if isinstance(error, tasks.AnalystDiedError):
        return str(error)
    raise StreamlintError(f"a Dask worker failed: {type(error).__name__}: {error}")


def _seconds() -> float:
    try:
        return max(float(os.environ.get(VARIABLE, "")), 0.1)
    except ValueError:
        return SECONDS
