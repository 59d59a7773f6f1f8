"""The report of a recorded run, in several formats. Every format's module has ``render(view) -> str``."""

from __future__ import annotations

import importlib

from streamlint.trace.rendering.view import View

__all__ = ["FORMATS", "View", "render"]

FORMATS = ("full", "json", "sarif", "html", "markdown")


def render(format: str, view: View) -> str:
    """The answer in a format, with its final line end."""
    module = importlib.import_module(f"streamlint.trace.rendering.{format}")
    text: str = module.render(view)
    return text
