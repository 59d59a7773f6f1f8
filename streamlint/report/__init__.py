"""Output formats, a module each. Every module has ``render(view) -> str``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

from streamlint.config import FORMATS
from streamlint.findings import Report

__all__ = ["FORMATS", "View", "render"]


@dataclass(frozen=True, slots=True)
class View:
    """What a format is given: a report, and how to show it."""

    report: Report
    color: bool = False
    width: int = 80
    links: bool = False  # whether rule names may be terminal hyperlinks
    evidence: Mapping[str, Mapping[str, object]] | None = None  # by code


def render(format: str, view: View) -> str:
    """The report in a format, with its final line end; empty if there is nothing to say."""
    module = importlib.import_module(f"streamlint.report.{format.replace('-', '_')}")
    text: str = module.render(view)
    return text
