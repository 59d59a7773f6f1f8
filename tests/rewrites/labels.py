"""Labels on lines: a comment at the end of each line of code, which stays with the statement wherever a rewrite puts it."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable

from rename import File

LABEL = re.compile(r"#((?: @\d+:\d+)+)$")
Label = tuple[int, int]  # number of the file, row


def labelled(files: Iterable[File]) -> list[File]:
    """The files with a label, and no other comment, on each line of Python that can end with one."""
    return [_labelled(file, number) if file.language == "python" else file for number, file in enumerate(files)]


def _labelled(file: File, number: int) -> File:
    lines = file.text.split("\n")
    tokens = list(tokenize.generate_tokens(io.StringIO(file.text).readline))
    for token in tokens:
        row, column = token.start
        if token.type == tokenize.COMMENT:
            lines[row - 1] = lines[row - 1][:column].rstrip()
    for row in {token.start[0] for token in tokens if token.type in (tokenize.NEWLINE, tokenize.NL)}:
        if line := lines[row - 1].strip("\n"):
            lines[row - 1] = f"{line}  # @{number}:{row}" if line.strip() else line
    return File(file.name, file.language, "\n".join(lines))


def labels_of(line: str) -> list[Label]:
    """The labels at the end of a line."""
    found = LABEL.search(line)
    pairs = (word[1:].partition(":") for word in found[1].split()) if found else ()
    return [(int(number), int(row)) for number, _, row in pairs]


def comment(labels: Iterable[Label]) -> str:
    """The comment that carries labels."""
    return "#" + "".join(f" @{number}:{row}" for number, row in labels)
