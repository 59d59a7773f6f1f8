"""The rows of the user's own that a run has used: those whose names its code spells.

Rows that nothing spells describe code that is not there, or describe it under a wrong name. A name counts wherever it stands: in a call, an
import, an annotation, behind a return. A member of a type counts by its last part, for the type of a value need not be known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from streamlint.config.options import Options, Source
from streamlint.discovery.outlines import imports_in
from streamlint.findings import Reported
from streamlint.models import is_covered, names_of, with_user_rows
from streamlint.models.keys import ROWS
from streamlint.models.listing import key_of

_CHAIN = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\s*(?:\.|::|->)\s*[^\W\d]\w*)*")
_MEMBER = re.compile(r"(?:\.|->|::)\s*([^\W\d]\w*)")
_JOINT = re.compile(r"\s*(\.|::|->)\s*")
_TAKEN = re.compile(r"(\w+)(?:[ \t]+as[ \t]+(\w+))?")
_MODULE = re.compile(r"([\w.]+)(?:[ \t]+as[ \t]+(\w+))?")
_OPENED = re.compile(r"\busing\s+namespace\s+([\w:]+)")


def find(sources: Sequence[Source], options: Options, lowered: Callable[[Source], Any]) -> Reported:
    """The rows that the sources are about."""
    rows = _Rows(options.user_models)
    used: set[str] = set()
    for source in sources:
        used |= rows.used_in(source)
    return Reported([], own_rows=frozenset(used))


class _Rows:
    """The user's rows by name, for each language."""

    def __init__(self, tables: Iterable[tuple[str, Any]]) -> None:
        tables = tuple(tables)
        models = {language: with_user_rows(language, tables) for language in ("python", "cuda")}
        self._rows: dict[str, list[tuple[str, str]]] = {language: [] for language in models}
        self._members: dict[str, list[tuple[str, str]]] = {language: [] for language in models}
        for source, data in tables:
            for language, known in models.items():
                if data.get("language", language) != language:
                    continue
                for kind in ROWS:
                    for number, table in enumerate(data.get(kind, ())):
                        key = key_of(source, kind, number)
                        for name in names_of(table):
                            self._rows[language].append((name, key))
                            holder, _, last = name.rpartition("::" if "::" in name else ".")
                            if (name.startswith("*") and "*" not in last) or (
                                kind in ("call", "attribute", "trait") and known.type_named(holder) is not None
                            ):
                                self._members[language].append((last, key))

    def used_in(self, source: Source) -> set[str]:
        """The rows that a source is about; Cython calls both languages."""
        names = set(_spelled(source))
        ends = tuple(name for name in names if name.startswith("."))  # of relative imports
        members = set(_MEMBER.findall(source.text))
        found: set[str] = set()
        for language in ("python", "cuda") if source.language == "cython" else (source.language,):
            found |= {key for last, key in self._members[language] if last in members}
            for row, key in self._rows[language]:
                if (
                    row in names
                    or ("*" in row and any(is_covered(row.split("*"), name) for name in names))
                    or any(f".{row}".endswith(end) for end in ends)
                ):
                    found.add(key)
        return found


def _spelled(source: Source) -> Iterator[str]:
    """The full names that stand in a text, as far as its imports say what they mean."""
    meant: dict[str, str] = {}
    if source.language != "cuda":
        for module, members, plain in imports_in(source.text):
            for name, alias in _TAKEN.findall(members):
                full = f"{'.' + module.lstrip('.') if module.startswith('.') else module}.{name}".replace("..", ".")
                meant[alias or name] = full
            for name, alias in _MODULE.findall(plain):
                meant[alias or name.partition(".")[0]] = name if alias else name.partition(".")[0]
        yield from meant.values()
    opened = _OPENED.findall(source.text) if source.language != "python" else []
    for written in set(_CHAIN.findall(source.text)):
        chain = _JOINT.sub(lambda joint: "::" if joint[1] == "::" else ".", written)
        head, joint, rest = chain.partition("." if source.language != "cuda" else "::")
        for name in _beginnings(f"{meant.get(head, head)}{joint}{rest}"):
            yield name
            yield from (f"{space}::{name}" for space in opened)


def _beginnings(name: str) -> Iterator[str]:
    """A name, and the names that it begins with: ``acme.Queue.flush`` says ``acme.Queue`` too."""
    yield name
    for joint in re.finditer(r"\.|::", name):
        if joint.start():
            yield name[: joint.start()]
