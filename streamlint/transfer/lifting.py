"""From an instruction up to the calls that lead to it."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.transfer.transfer import Transfer

HIGHEST = 3
"""Calls behind one another."""


def lifted(transfer: Transfer, site: Site, depth: int = 0) -> Iterator[Site]:
    """A place, and the calls of its function and of their functions, that run it as a part of themselves."""
    yield site
    for caller, call in transfer.callers(site.function) if depth < HIGHEST else ():
        yield from lifted(transfer, Site(caller, call), depth + 1)


def named_above(transfer: Transfer, function: Function) -> Iterator[Function]:
    """A function, and those from which calls may lead to it as far as names tell: none of the functions of `lifted` is missing.

    Whom a call enters is not solved for it.
    """
    found, highest = {function: None}, [function]
    yield function
    for _ in range(HIGHEST):
        callers = dict.fromkeys(caller for one in highest for caller, _ in transfer.facts.call_places(one))
        highest = [caller for caller in callers if caller not in found]
        found.update(dict.fromkeys(highest))
        yield from highest
