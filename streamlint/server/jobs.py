"""What the server and its child say to each other. Places are in the client's units, as the protocol counts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Range = tuple[int, int, int, int]  # line, character, end line, end character


@dataclass(frozen=True, slots=True)
class Setup:
    """Where to look and how to count. ``tables`` change every configuration, each with the name that errors call it by."""

    folders: tuple[str, ...]
    encoding: str = "utf-16"
    config: str | None = None  # one configuration file for all
    isolated: bool = False
    default_excludes: bool = True
    tables: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """What an open document holds now; None once it is closed."""

    path: str
    text: str | None
    language: str = ""


@dataclass(frozen=True, slots=True)
class Touched:
    """Files that changed on disk; ``settings`` where one of them decides how others are read."""

    paths: tuple[str, ...]
    settings: bool = False


@dataclass(frozen=True, slots=True)
class Lint:
    """Asks for a `Linted`. Not ``whole`` where it must be quick: what cannot see the last edit is not looked at."""

    path: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Repairs:
    """Asks for the repairs of findings: a list of `Repair` for each fingerprint."""

    path: str
    fingerprints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FixAll:
    """Asks for what ``check --fix`` does to an open document: a `Repair`, or None."""

    path: str


Job = Setup | Text | Touched | Lint | Repairs | FixAll


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding, or a problem, of an open document."""

    code: str
    severity: str  # error, warning, note
    message: str
    url: str
    range: Range
    trail: tuple[tuple[str, str, Range], ...] = ()  # message, path, place
    fingerprint: str = ""  # none for a problem: nothing repairs it
    unused: bool = False


@dataclass(frozen=True, slots=True)
class Linted:
    """What is to be shown of open documents, and those whose findings were made from what has changed since."""

    shown: Mapping[str, tuple[FindingRow, ...]]
    stale: tuple[str, ...] = ()
    partial: bool = False  # whether something was not looked at


@dataclass(frozen=True, slots=True)
class Repair:
    """Edits of one document. ``kind``: safe, unsafe, ignore (a comment)."""

    title: str
    kind: str
    edits: tuple[tuple[Range, str], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """To the job of this number. ``status``: done, overtaken (by a newer text), refused (a wrong configuration), failed."""

    number: int
    status: str
    value: Any = None
