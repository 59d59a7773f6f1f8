"""Places as machines outside of this run read them: paths from the root of the repository, columns in bytes."""

from __future__ import annotations

import os
import urllib.parse
from pathlib import Path

from streamlint.support.repositories import repository


def repository_path(file: str) -> str:
    """The path from the root of its repository with links resolved; without a repository, as shown."""
    real = Path(os.path.realpath(file))
    root = repository(real.parent)
    return real.relative_to(root).as_posix() if root else file


def as_uri(path: str) -> str:
    """A relative path as a URI reference, an absolute one as a file URI."""
    return Path(path).as_uri() if os.path.isabs(path) else urllib.parse.quote(os.fsencode(path))


def byte_column(line: str, column: int) -> int:
    """The column in bytes of UTF-8 for one in code points; both count from 1."""
    return len(line[: column - 1].encode("utf-8", "surrogatepass")) + 1
