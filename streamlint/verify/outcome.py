"""The end of a run of ``streamlint verify``: its reports, its evidence, its exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamlint.support.writing import write_output
from streamlint.verify import evidence
from streamlint.verify.criteria import Verdict
from streamlint.verify.progress import Progress
from streamlint.verify.runner import Result


def exit_code(results: Iterable[Result], *, self_test: bool, strict: bool) -> int:
    """The exit code of a run with these results."""
    verdicts = {result.judgement.verdict for result in results}
    if verdicts <= {Verdict.UNSUPPORTED}:
        return 2
    if self_test:
        return int(Verdict.CONFIRMED in verdicts)
    failing = {Verdict.REFUTED} | ({Verdict.INCONCLUSIVE, Verdict.UNSUPPORTED} if strict else set())
    return int(bool(verdicts & failing))


def write_reports(targets: Sequence[tuple[str, str | None]], render: Callable[[str, str | None], str]) -> None:
    """Each format to its place."""
    for format, file in targets:
        text = render(format, file)
        if file is None:
            sys.stdout.write(text)
        else:
            try:
                write_output(file, text)
            except OSError as problem:
                fail(f"cannot write {file}: {problem.strerror}")


def save(options: argparse.Namespace, facts: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], progress: Progress) -> None:
    """Keep the results as evidence."""
    folder = Path(options.evidence) if options.evidence else None
    try:
        path = evidence.save(cases, facts, folder)
    except OSError as problem:
        progress.say(f"the evidence could not be kept: {problem}")
    else:
        progress.say(f"evidence kept in {path}")


def fail(message: str) -> int:
    """Say why nothing ran; returns the exit code for it."""
    print(f"streamlint verify: {message}", file=sys.stderr, flush=True)
    return 2
