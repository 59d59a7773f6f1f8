"""What users declare in their own code: the closed vocabulary, and how a comment or the metadata of ``Annotated`` says it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamlint.support.records import record

PREFIX = "streamlint:"
"""How a comment begins, and metadata that shall mean nobody else."""
METADATA = "Annotated"
"""The head of a type that has metadata; what a comment declares is kept as such a type."""
WAITS = "synchronizes"
"""Of a function: the host has waited for its stream when it returns."""
ANYTHING = "Any"


@record(frozen=True, slots=True)
class Said:
    """What words say of a value: where memory is (``host``, ``device``, ``managed``; "" where they do not say), whether memory of the host
    is ``pinned`` or ``pageable``, and of a stream whether it is ``blocking``, ``non-blocking`` or the ``default`` one."""

    space: str = ""
    pinning: str = ""
    stream: str = ""

    @property
    def words(self) -> str:
        """It in words."""
        if self.stream:
            return "the default stream" if self.stream == "default" else f"a {self.stream} stream"
        return f"{self.pinning or self.space} memory"


WORDS = {
    "pinned": Said("host", "pinned"),
    "pageable": Said("host", "pageable"),
    "host": Said("host"),
    "cpu": Said("host"),
    "device": Said("device"),
    "cuda": Said("device"),
    "managed": Said("managed"),
    "blocking": Said(stream="blocking"),
    "non-blocking": Said(stream="non-blocking"),
    "default-stream": Said(stream="default"),
}
"""The words for values, each with what it says."""
VOCABULARY = (*WORDS, WAITS)
"""All words. The list is closed: another word is an error where only streamlint can be meant."""

COMMENT = re.compile(r"streamlint:(?![ \t]*ignore(?:-file)?(?![\w-]))[ \t]*(?P<words>[^#\r\n]*)")
_REMARK = re.compile(r"[ \t]--?[ \t]|[;(]|\*/|//")
_WORD = "|".join(VOCABULARY)
_IN_COMMENT = re.compile(rf"(?:#|//|/\*)[^\r\n]*streamlint:[ \t]*(?:{_WORD})\b")
_IN_METADATA = re.compile(rf"[\"'](?:{PREFIX}\s*)?(?:{_WORD})[\"']")


def words_in(comment: str) -> list[str]:
    """The words that a comment declares, known or not; a remark may stand behind a dash, a semicolon or a parenthesis."""
    found: list[str] = []
    for match in COMMENT.finditer(comment):
        words = match["words"]
        remark = _REMARK.search(words)
        found += [word for each in words[: remark.start() if remark is not None else None].split(",") if (word := each.strip())]
    return found


def declares(text: str) -> bool:
    """Whether a source may declare something."""
    return ("streamlint:" in text and _IN_COMMENT.search(text) is not None) or (METADATA in text and _IN_METADATA.search(text) is not None)


def said_by(words: Iterator[str]) -> Said | None:
    """What words say together; None where none of them says something of a value."""
    found: Said | None = None
    for word in words:
        said = WORDS.get(word)
        if said is not None:
            old = found or Said()
            found = Said(said.space or old.space, said.pinning or old.pinning, said.stream or old.stream)
    return found


def word_of(literal: str) -> str:
    """The word that metadata says, a text with its quotes; "" if it is none of ours."""
    content = literal.strip("\"'").removeprefix(PREFIX).strip()
    return content if literal[:1] in "\"'" and content in WORDS else ""
