"""Indices that a call gives as constants: in the function that it enters, they are also its parameters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.places import TUPLE, Element, Place

Given = dict[object, list[object]]
"""By type and value: the parameters for which a call gives constants."""
_MOST_NAMES = 8


def by_parameters(held: Tracked, given: Given) -> Iterator[Tracked]:
    """Other names of something tracked: an index that equals a constant argument of a call is also the parameter."""
    root, path = held.place
    ways = [dict.fromkeys([key, *_names(key, given)]) for key in path] if given else []
    if any(len(way) > 1 for way in ways):
        yield from (held._replace(place=Place(root, each)) for each in islice(product(*ways), 1, _MOST_NAMES))


def _names(key: str | Element, given: Given) -> Iterator[Element]:
    yield from map(Element, _parameters(key.key, given)) if isinstance(key, Element) else ()


def _parameters(key: object, given: Given) -> Iterator[object]:
    if isinstance(key, tuple) and key[:1] == (TUPLE,):
        parts = product(*(_parameters(part, given) for part in key[1:]))
        yield from ((TUPLE, *each) for each in islice(parts, _MOST_NAMES))
    else:
        yield from [key] if isinstance(key, tuple) else given.get((type(key), key), [key])
