"""Where the processor time of a cold run goes, stage by stage, beside ruff's whole: for the page of what a run costs.

    python benchmarks/speed.py stages --corpus DIR [--packages NAME…]

One process, no cache, the rules that are on. Each stage counts without those inside it. "Python's parser" is `compile` on the Python that
is lowered, and nothing of ours: what no linter that runs in Python can do without. Functions that show something are those of which a path
shows an operation that a check begins with (`interpreter/stakes.py`): with a perfect guess, only these would have to be run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from streamlint import analysis, engine, linter, screening
from streamlint.config import Resolver, Settings
from streamlint.files import discover
from streamlint.frontends import python
from streamlint.reading import read_bytes

FILES, PARSER, LOWER, WHICH, SHOWING, SILENT, REST = STAGES = (
    "finding and reading the files, looking for words",
    "Python's parser",
    "the small language, and C++'s parser",
    "which functions are run",
    "functions that show something",
    "functions that show nothing",
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

    def move(self, seconds: float, before: str, after: str) -> None:
        """Count some of a stage to another one."""
        self.spent[before] -= seconds
        self.spent[after] += seconds

    def timed(self, stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is counted to a stage."""

        def call(*given: Any, **more: Any) -> Any:
            with self.at(stage):
                return work(*given, **more)

        return call

    def each(self, stage: str, work: Callable[..., Iterable[Any]]) -> Callable[..., Iterator[Any]]:
        """The same of a generator: what its consumer does with each value is not counted."""

        def walk(*given: Any) -> Iterator[Any]:
            values, end = iter(work(*given)), object()
            while True:
                with self.at(stage):
                    value = next(values, end)
                if value is end:
                    return
                yield value

        return walk

    def _turn(self) -> None:
        now = time.process_time()
        self.spent[self._open[-1]] += now - self._since
        self._since = now


def take(tree: Path) -> dict[str, Any]:
    """The stages of a run over a tree, in seconds, and how many functions were run and have shown something."""
    functions: Counter[str] = Counter()
    explorers: list[Any] = []
    check_root, explore = analysis.Analysis._check_root, analysis.Explorer

    def explorer(*given: Any) -> Any:
        explorers.append(explore(*given))
        return explorers[-1]

    def root(self: Any, *given: Any) -> Iterator[Any]:
        before = clock.spent[SILENT]
        with clock.at(SILENT):
            found = list(check_root(self, *given))
        showed = explorers.pop().stakes.shown
        functions[SHOWING if showed else SILENT] += 1
        if showed:
            clock.move(clock.spent[SILENT] - before, SILENT, SHOWING)
        return iter(found)

    clock = Clock()
    with ExitStack() as changed:
        for place, name, new in (
            (linter, "discover", clock.timed(FILES, discover)),
            (linter, "read_bytes", clock.timed(FILES, read_bytes)),
            (screening, "flags_of", clock.timed(FILES, screening.flags_of)),
            (python, "_parse", clock.timed(PARSER, python._parse)),
            (engine, "lowered", clock.timed(LOWER, engine.lowered)),
            (analysis.Analysis, "roots", clock.each(WHICH, analysis.Analysis.roots)),
            (analysis.Analysis, "_check_root", root),
            (analysis, "Explorer", explorer),
        ):
            changed.enter_context(patch.object(place, name, new))
        report = linter.run([tree], Resolver(Settings.of(), default_excludes=False))
    return {
        "seconds": clock.stop(),
        "files": report.files,
        "relevant": report.relevant,
        "functions": functions.total(),
        "showing": functions[SHOWING],
    }
