"""What the linter says of a generated program, held against what is expected of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from generated.programs import HAZARDS, write
from generated.texts import Program, Spec

from streamlint import Finding, Settings, lint
from streamlint.checks.base import registry
from streamlint.config.options import Options, Source
from streamlint.runner.engine import analyse

Found = frozenset[tuple[str, str, int]]  # code, file, row


@dataclass(frozen=True)
class Outcome:
    """Whether the code of the hazard stands on the chain, and which other findings there are."""

    spec: Spec
    code: str
    reported: bool
    others: tuple[str, ...]

    @property
    def right(self) -> bool:
        return self.reported != self.spec.harmless


def checked(program: Program, folder: Path, settings: Settings) -> Found:
    """The findings of ``streamlint check`` on a program, which is written to an empty folder."""
    write(program, folder)
    return placed(lint([folder], settings).findings, f"{folder}/")


def read_whole(program: Program, _: Path, settings: Settings) -> Found:
    """The findings of the engine where every file is read, whatever its text mentions."""
    sources = [Source(name, text, "python" if name.endswith(".py") else "cuda") for name, text in program.files.items()]
    return placed(analyse(sources, Options(codes=settings.codes & frozenset(registry()))).findings)


def placed(findings: Iterable[Finding], home: str = "") -> Found:
    return frozenset((finding.code, finding.span.file.removeprefix(home), finding.span.row) for finding in findings)


def judge(program: Program, found: Found) -> Outcome:
    """A look-alike is flagged by the code of its hazard, wherever it stands."""
    code = HAZARDS[program.spec.hazard].code
    mine = {finding for finding in found if finding[0] == code and (program.spec.harmless or finding[1:] in program.chain)}
    return Outcome(program.spec, code, bool(mine), tuple(sorted(finding[0] for finding in found - mine)))
