"""Paths as findings show them."""

from __future__ import annotations

import os


def display_path(path: str) -> str:
    """A path as findings show it: relative to the current folder where it lies below, with forward slashes."""
    return below(os.path.abspath(path), os.getcwd())


def below(absolute: str, here: str) -> str:
    """An absolute path as it is shown from a folder."""
    above = here.rstrip(os.sep) + os.sep
    return (absolute[len(above) :] if absolute.startswith(above) else absolute).replace(os.sep, "/")
