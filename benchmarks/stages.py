"""Where the processor time of a cold run goes, stage by stage, beside ruff's whole: for the page of what a run costs.

    python benchmarks/speed.py stages --corpus DIR [--packages NAME…]

One process, no cache, the rules that are on. Each stage counts without those inside it. "Python's parser" is `compile` on the Python that
is lowered, and nothing of ours: what no linter that runs in Python can do without.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from streamlint.config.settings import Resolver, Settings
from streamlint.discovery import screening
from streamlint.discovery.files import discover
from streamlint.frontends import python
from streamlint.hazards import findings as hazards
from streamlint.runner import linter, parsing
from streamlint.support.reading import read_source
from streamlint.waits import findings as waits

FILES, PARSER, LOWER, WAITS, HAZARDS, REST = STAGES = (
    "finding and reading the files, looking for words",
    "Python's parser",
    "lowering, and C++'s parser",
    "waits in hot loops",
    "all other rules",
    "the rest",
)


class Clock:
    """Processor seconds of stages that may lie in each other."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._open = [REST]
        self._since = time.process_time()

    @contextmanager
    def at(self, stage: str) -> Iterator[None]:
        """Count what is done in here to a stage."""
        self._turn()
        self._open.append(stage)
        try:
            yield
        finally:
            self._turn()
            self._open.pop()

    def stop(self) -> dict[str, float]:
        """The stages in order."""
        self._turn()
        return {stage: round(self.spent[stage], 2) for stage in STAGES}

    def timed(self, stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is counted to a stage."""

        def call(*given: Any, **more: Any) -> Any:
            with self.at(stage):
                return work(*given, **more)

        return call

    def _turn(self) -> None:
        now = time.process_time()
        self.spent[self._open[-1]] += now - self._since
        self._since = now


def take(tree: Path) -> dict[str, Any]:
    """The stages of a run over a tree, in seconds."""
    clock = Clock()
    with ExitStack() as changed:
        for place, name, new in (
            (linter, "discover", clock.timed(FILES, discover)),
            (linter, "read_source", clock.timed(FILES, read_source)),
            (screening, "flags_of", clock.timed(FILES, screening.flags_of)),
            (python, "parse", clock.timed(PARSER, python.parse)),
            (parsing, "parsed", clock.timed(LOWER, parsing.parsed)),
            (waits, "find", clock.timed(WAITS, waits.find)),
            (hazards, "find", clock.timed(HAZARDS, hazards.find)),
        ):
            changed.enter_context(patch.object(place, name, new))
        report = linter.run([tree], Resolver(Settings.of(), default_excludes=False))
    return {"seconds": clock.stop(), "files": report.files, "relevant": report.relevant}
