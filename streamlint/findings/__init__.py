"""What a run reports: findings with their places, trails and facts; operations, as checks see them; what `verify` measured of a rule.

In: nothing. Out: the records that all folders above exchange. May import: ``cuda_model``, ``support``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, MutableMapping

from streamlint.findings.grounds import Grounds
from streamlint.support.records import field, record


class Category(enum.Enum):
    """What goes wrong. Decides the severity, once and here."""

    STALL = "stall"
    RACE = "race"
    DEADLOCK = "deadlock"
    ERROR = "error"
    PORTABILITY = "portability"

    @property
    def severity(self) -> Severity:
        return _SEVERITY[self]


class Severity(enum.Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


_SEVERITY = {
    Category.RACE: Severity.ERROR,
    Category.DEADLOCK: Severity.ERROR,
    Category.ERROR: Severity.ERROR,
    Category.STALL: Severity.WARNING,
    Category.PORTABILITY: Severity.NOTE,
}


LEVELS = ("low", "medium", "high")
"""How sure a finding is, from the least sure on."""


# Code that was not read, and declarations that are wrong, are more than a question of portability.
_OWN_SEVERITY = {"SL000": Severity.WARNING, "SL901": Severity.WARNING}


@record(frozen=True, slots=True, order=True)
class Span:
    """A place in a file. Rows and columns count from 1, columns in code points, the end is exclusive."""

    file: str
    row: int
    column: int
    end_row: int
    end_column: int

    @property
    def at(self) -> tuple[int, int, int, int]:
        """The place within its file, as the program's nodes hold theirs."""
        return self.row, self.column, self.end_row, self.end_column


@record(frozen=True, slots=True)
class Step:
    """One step of a trail: a fact and where it came from."""

    message: str
    span: Span


@record(frozen=True, slots=True)
class Edit:
    """Replace the text of ``span`` by ``content``."""

    content: str
    span: Span


@record(frozen=True, slots=True)
class Fix:
    """Edits that repair a finding. ``applicability``: ``safe`` can change no result, else ``unsafe``, or ``display`` only."""

    message: str
    edits: tuple[Edit, ...]
    applicability: str = "unsafe"


@record(frozen=True, slots=True)
class Facts:
    """What is known of a finding's operation, in the words that are published; ``None`` where it is not known."""

    api: str | None = None  # torch, cupy, numba, cuda-python, cuda
    bytes: int | None = None
    memory: str | None = None  # pageable, pinned, device, managed
    direction: str | None = None  # h2d, d2h, d2d, peer
    stream: str | None = None  # null, blocking, non-blocking
    kind: str | None = None  # which of a rule's mistakes it is

    @classmethod
    def read(cls, facts: Mapping[str, object]) -> Facts:
        """From what a check noted. A check may note more than is known (``unknown``, ``parameter``): that is passed over."""
        size, stream, kind = facts.get("bytes"), str(facts.get("stream") or ""), facts.get("kind") or facts.get("what")
        return cls(
            api=_api(facts),
            bytes=size if isinstance(size, int) and size > 0 else None,
            memory=_word(facts.get("memory"), ("pageable", "pinned", "device", "managed")),
            direction=_word(facts.get("direction"), ("h2d", "d2h", "d2d", "peer")),
            stream=_word({"ambient": "null"}.get(stream, stream), ("null", "blocking", "non-blocking")),
            kind=str(kind) if kind else None,
        )


def as_facts(known: Facts) -> dict[str, object]:
    """A record as plain data, without what is not known."""
    return {name: value for name in known.__match_args__ if (value := getattr(known, name)) is not None}


def _word(value: object, known: tuple[str, ...]) -> str | None:
    return value if isinstance(value, str) and value in known else None


def _api(facts: Mapping[str, object]) -> str | None:
    """The library, of a name such as ``torch``, ``cuda-runtime``, ``torch.Tensor.item`` or ``cudaDeviceSynchronize``."""
    libraries = facts.get("libraries")
    name = str(facts.get("api") or ("torch" if isinstance(libraries, list) and "torch" in libraries else ""))
    for api in ("torch", "cupy", "numba"):
        if name == api or name.startswith(f"{api}."):
            return api
    if name.startswith(("cuda_python", "cuda-python", "cuda.bindings")):
        return "cuda-python"
    return "cuda" if name.startswith(("cu", "thrust")) else None


@record(frozen=True, slots=True)
class Finding:
    """One hazard: the offending operation, and the trail that shows it."""

    code: str
    name: str
    category: Category
    message: str
    span: Span
    trail: tuple[Step, ...] = ()
    help: str = ""
    fix: Fix | None = None
    facts: dict[str, object] = field(default_factory=dict, hash=False)
    qualname: str = ""  # the function that holds the place; part of the fingerprint
    related: tuple[str, ...] = ()  # codes that lost against this one on the same operation
    pairs: tuple[tuple[Span, Span], ...] = ()  # of conflicts: the places of the two accesses
    fingerprint: str = ""  # outlives moved lines; made once all findings of a run are known
    covers: tuple[Span, ...] = ()  # other places of the same rule that it reports, which get no finding of their own
    shown: bool = True  # that it costs or breaks something here; else it only may, and is reported on request
    grounds: Grounds | None = field(default=None, hash=False)  # what it rests on, where that is known

    @property
    def known(self) -> Facts:
        """The facts as a record."""
        return Facts.read(self.facts)

    @property
    def severity(self) -> Severity:
        return _OWN_SEVERITY.get(self.code) or self.category.severity

    def sort_key(self) -> tuple[str, int, int, str]:
        return (self.span.file, self.span.row, self.span.column, self.code)


@record(frozen=True, slots=True)
class Problem:
    """A file, or a part of it, that could not be read (``SL000``).

    ``lost``: nothing of the file, or of a whole function, was analysed. Such a problem becomes a finding; any other is only a warning.
    ``fault``: rules have reported nothing, for a fault of the linter: the run has failed (exit code 2).
    """

    file: str
    message: str
    row: int = 1
    column: int = 1
    lost: bool = False
    fault: bool = False


@record()
class Reported:
    """What rules report of a program, the questions about values that were not followed to their ends, and why rules ended, by code.

    ``coverage`` are the figures of ``--coverage``, and ``own_rows`` the user's rows that were used, where somebody asks for them.
    """

    findings: list[Finding]
    cut: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    coverage: dict[str, object] = field(default_factory=dict)
    own_rows: frozenset[str] = frozenset()


@record(slots=True)
class Part:
    """What one task of a run gave, and what build files said meanwhile: path, question, answer. Can be sent between processes."""

    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    cut: int = 0  # questions about values that were not followed to their ends
    coverage: dict[str, object] = field(default_factory=dict)
    own_rows: list[str] = field(default_factory=list)  # of the user's models: those that were used
    built: list[list[object]] = field(default_factory=list)


@record(slots=True)
class Report:
    """The outcome of a run: findings in order, problems, and what was looked at."""

    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    files: int = 0  # lintable files that were found
    relevant: int = 0  # of these, how many mention CUDA
    coverage: dict[str, object] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    texts: MutableMapping[str, str] = field(default_factory=dict)  # source of files that findings show
    baseline: str = ""  # the baseline that was held against the findings
    baselined: list[Finding] = field(default_factory=list)  # what it hides
    unsure: int = 0  # findings that are less sure than the settings ask for, and are left out
    remarks: list[str] = field(default_factory=list)  # what else the user should know
    linted: list[str] = field(default_factory=list)  # the files that were looked at, in order
    built: list[list[object]] = field(default_factory=list)  # what build files said: path, question, answer
    models: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)  # the user's rows, of all configurations of the run
    own_rows: list[str] = field(default_factory=list)  # those of them that were used
    trials: dict[str, object] = field(default_factory=dict)  # by file: what tries its fixes

    def add(self, part: Report) -> None:
        """Take over what was found in some of the files."""
        self.findings += part.findings
        self.problems += part.problems
        self.coverage.update(part.coverage)
        self.built += part.built
        self.own_rows += part.own_rows
        self.remarks += part.remarks
        self.texts.update(part.texts)
        for stage, seconds in part.timings.items():
            self.timings[stage] = self.timings.get(stage, 0.0) + seconds
