"""The page."""

from collections.abc import Mapping, Sequence
from typing import Any


def render(platform: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], remarks: Sequence[str]) -> str:
    raise NotImplementedError
