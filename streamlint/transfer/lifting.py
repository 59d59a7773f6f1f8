"""From an instruction up to the calls that lead to it."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.objects import Site
from streamlint.transfer.transfer import Transfer

HIGHEST = 3
"""Calls behind one another."""


def lifted(transfer: Transfer, site: Site, depth: int = 0) -> Iterator[Site]:
    """A place, and the calls of its function and of their functions, that run it as a part of themselves."""
    yield site
    for caller, call in transfer.callers(site.function) if depth < HIGHEST else ():
        yield from lifted(transfer, Site(caller, call), depth + 1)
