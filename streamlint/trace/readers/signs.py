"""What an event below a user's function says of the place that made it, and which names that place may have in the source.

Names come from the event itself: of a Python function its name and those below it (a decorator's wrapper says little), of a builtin
its name. Of an operator of PyTorch (``aten::item``) they are the names that the models give one row with the method of that name, and
Python's own for the operators that it writes as syntax.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from streamlint import models
from streamlint.support.records import record
from streamlint.trace.readers.sites import Body, Site

PYTHON, BUILTIN, MODULE, OPERATOR, BARE = "python", "builtin", "module", "operator", "bare"
_PYTHON = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<name>.*)", re.DOTALL)
_BUILTIN_NAME = re.compile(r"<(?:built-in (?:method|function)|(?:slot|method)[- ]wrapper|method|class method) '?(?P<name>[\w.]+)")
_MODULE = "nn.Module: "
_TENSOR = "torch.Tensor."
_INDEX = "__index__"  # each subscript may ask for it, hardly one does
# Operators that Python writes as syntax, where their name is not Python's (language reference, 3.3.1 and 3.3.8; native_functions.yaml).
_SYNTAX = dict(
    pair.split(":")
    for pair in (
        "is_nonzero:bool index:getitem select:getitem slice:getitem index_put:setitem fill:setitem copy:setitem div:truediv "
        "floor_divide:floordiv remainder:mod bitwise_and:and bitwise_or:or bitwise_xor:xor bitwise_not:invert unbind:iter"
    ).split()
)


@record(frozen=True, slots=True)
class Sign:
    """An event directly below a user's function. ``inner`` are the names of the first Python functions below it."""

    kind: str
    name: str
    inner: tuple[str, ...] = ()


@functools.lru_cache(maxsize=65536)
def python_function(text: str) -> tuple[str, int, str] | None:
    """File, first line and name of a Python function's event; None for others."""
    found = None if text.startswith((_MODULE, "<")) else _PYTHON.fullmatch(text)
    return (found["file"], int(found["line"]), found["name"]) if found else None


@functools.lru_cache(maxsize=65536)
def sign_name(text: str) -> tuple[str, str]:
    """Kind and plain name of an event of the Python tracer."""
    if text.startswith(_MODULE):
        return MODULE, text[len(_MODULE) :]
    if found := python_function(text):
        return PYTHON, found[2].rpartition(".")[2]
    builtin = _BUILTIN_NAME.match(text)
    return BUILTIN, builtin["name"].rpartition(".")[2] if builtin else text


@functools.cache
def _rows() -> dict[str, frozenset[str]]:
    """By method of a tensor: the special methods that one row of the models describes together with it."""
    calls = models.builtin("python").calls
    together: dict[int, set[str]] = {}
    for name, row in calls.items():
        if name.startswith(_TENSOR):
            together.setdefault(id(row), set()).add(name[len(_TENSOR) :])
    return {name: frozenset(one for one in names if one.startswith("__")) for names in together.values() for name in names}


@functools.lru_cache(maxsize=4096)
def names_of_operator(operator: str) -> tuple[tuple[str, ...], ...]:
    """The names that a place may have in the source for an operator, the likeliest first.

    An operator directly below a Python function was reached without a call of a builtin: by syntax, or by `float(x)` and its like.
    """
    plain = operator.rpartition("::")[2].partition(".")[0].rstrip("_")
    if plain in _SYNTAX:
        special = [f"__{_SYNTAX[plain]}__"]
    else:
        special = [*_rows().get(plain, ()), f"__{plain}__"]
        special = [one for one in special if one not in {f"__{name}__" for name in _SYNTAX.values()}]
    if operator.rpartition("::")[2].endswith("_"):
        special = [f"__i{_SYNTAX.get(plain, plain)}__", *special]
    common = tuple(one for one in special if one != _INDEX)
    return common, (plain, f"{plain}_"), (_INDEX,) if _INDEX in special else ()


def names_of(sign: Sign) -> Iterator[tuple[str, ...]]:
    """Sets of names that the place of an event may have, the likeliest first."""
    if sign.kind == OPERATOR:
        yield from names_of_operator(sign.name)
        return
    if sign.kind in (PYTHON, BUILTIN):
        yield (sign.name,)
        yield from ((name,) for name in sign.inner)


def candidates(sign: Sign, body: Body, by_name: dict[str, list[int]], claimed: frozenset[str]) -> tuple[tuple[int, ...], bool]:
    """The sites of a body that an event may have come from, and whether names distinguish them.

    ``claimed`` are names of calls that other events are known by.
    """
    sites = body.sites
    for names in names_of(sign):
        found = {number for name in names for number in by_name.get(name, ())}
        if calls := tuple(sorted(number for number in found if not sites[number].attribute)) or tuple(sorted(found)):
            return calls, True
    if sign.kind in (PYTHON, MODULE):
        opaque = [number for number, site in enumerate(sites) if site.opaque and not claimed.intersection(site.names)]
        if sign.name in ("__init__", "__new__", "__call__"):
            classes = [number for number in opaque if _is_class(sites[number])]
            opaque = classes if classes and sign.name != "__call__" else opaque
        return tuple(opaque), False
    return (), False


def _is_class(site: Site) -> bool:
    return any(name[:1].isupper() for name in site.names)
