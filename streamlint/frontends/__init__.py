"""Front ends: source text in, `streamlint.program.Module` out.

May import: ``program``, ``support``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

LOST = "this function could not be read"  # begins the problem of a whole function, which is a finding
MISPLACED = "misplaced"  # begins the problem of a comment that declares something of nothing
NOT_READ = "left out: no parser for "  # begins a message that a run shows once, and not for each file


class UnreadableSource(Exception):
    """Source that no front end can read, with the place (from 1) and a reason that a user understands."""

    def __init__(self, row: int, column: int, message: str) -> None:
        super().__init__(f"{row}:{column}: {message}")
        self.row = row
        self.column = column
        self.message = message

    def __reduce__(self) -> tuple[type[UnreadableSource], tuple[int, int, str]]:
        return UnreadableSource, (self.row, self.column, self.message)


class MissingParser(UnreadableSource):
    """Source in a language whose parser is not installed, or does not work."""

    def __init__(self, message: str) -> None:
        super().__init__(1, 1, message)

    def __reduce__(self) -> tuple[type[MissingParser], tuple[str]]:  # type: ignore[override]
        return MissingParser, (self.message,)


@contextmanager
def parser_of(package: str) -> Iterator[None]:
    """Around the imports that C++ needs, and what makes its parser: a MissingParser names what is wrong with the package."""
    try:
        yield
    except ModuleNotFoundError:
        raise MissingParser(f"{NOT_READ}C++ ({package} is not installed): pip install {package}") from None
    except (ImportError, ValueError, OSError) as error:
        raise MissingParser(f"{NOT_READ}C++ ({package} does not work here: {error}): pip install --upgrade {package}") from None
