"""What a run is asked: the sources, and what decides findings apart from them."""

from __future__ import annotations

from streamlint import TYPE_CHECKING
from streamlint.support.records import field, record

if TYPE_CHECKING:
    from typing import Any


@record(frozen=True, slots=True)
class Source:
    """One file's text. ``path`` is shown in findings as it stands; ``language`` is ``python``, ``cuda`` or ``cython``.

    ``is_stripped`` says that the comments were removed already (``streamlint.runner.comments``).
    """

    path: str
    text: str
    language: str
    is_stripped: bool = False


@record(frozen=True, slots=True)
class Options:
    """What decides findings, apart from the sources. Hashable, so that it can key a cache."""

    codes: frozenset[str] = frozenset()
    default_stream: str = "auto"  # auto, legacy, per-thread
    target_device: str = "maybe"  # maybe, cuda
    hidden_sync: str = "hot-loops"
    evidence: str = "shown"  # shown, possible
    user_models: tuple[tuple[str, Any], ...] = field(default=(), hash=False)
    coverage: bool = False
