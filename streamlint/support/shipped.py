"""The model files of this installation: all there, or the run ends. Without their rows misuse would seem to be none."""

from __future__ import annotations

import functools
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.support import toml
from streamlint.support.errors import StreamlintError
from streamlint.support.reading import Unreadable, read_bytes

if TYPE_CHECKING:
    from typing import Any

MODELS = Path(__file__).parents[1] / "models"
MOST_BYTES = 1 << 22


@functools.cache
def model_files() -> tuple[Path, ...]:
    """The files, in the order of their names.

    Raises StreamlintError where there are none.
    """
    if not (paths := tuple(sorted(MODELS.glob("*.toml")))):
        raise StreamlintError(f"no model file can be found in {MODELS}: this installation is not whole")
    return paths


def text_of(path: Path) -> str:
    """The text of a model file.

    Raises StreamlintError where it cannot be read.
    """
    try:
        return read_bytes(path, MOST_BYTES).decode()
    except (Unreadable, UnicodeDecodeError) as error:
        raise StreamlintError(f"the model file {path} cannot be read: {error}") from None


@functools.cache
def head_of(path: Path) -> dict[str, Any]:
    """The strings in the head of a model file: its library, its language, its triggers.

    Raises StreamlintError where it cannot be read.
    """
    return toml.head_of(text_of(path))
