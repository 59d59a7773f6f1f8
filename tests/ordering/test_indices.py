"""Page-locked memory in containers of modules: by the index that each function has for it, two calls get the same or not."""

from __future__ import annotations

import pytest

from streamlint.config.options import Options, Source
from streamlint.frontends import python
from streamlint.hazards.findings import find
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower

KINDS = """import torch

POOL = {"a": torch.empty(100, pin_memory=True), "b": torch.empty(100, pin_memory=True)}


def kept(kind, out):
    return POOL[kind]
"""
TYPES = """import torch

POOL = {}


def kept(kind, out):
    page = POOL.get((kind, out.dtype))
    if page is None:
        page = torch.empty(100, dtype=out.dtype, pin_memory=True)
        POOL[kind, out.dtype] = page
    return page
"""
USES = """

def up(kind, values, out):
    page = kept(kind, out)
    page.copy_(torch.from_numpy(values))
    out.copy_(page, non_blocking=True)


def run(values):
    wide = torch.empty(100, dtype=torch.float64, device="cuda")
    slim = torch.empty(100, dtype=torch.float32, device="cuda")
    next = torch.empty(100, dtype=torch.float32, device="cuda")
    up({first}, values, {one})
    up({second}, values, {other})
"""


def lowered(source: Source) -> ModuleIR:
    return lower(python.lower(source.path, source.text))


@pytest.mark.parametrize(
    ("pool", "first", "one", "second", "other", "same"),
    [
        (KINDS, "'a'", "slim", "'a'", "next", True),
        (KINDS, "'a'", "slim", "'b'", "next", False),
        (TYPES, "'a'", "slim", "'a'", "next", True),
        (TYPES, "'a'", "slim", "'b'", "next", False),
        (TYPES, "'a'", "slim", "'a'", "wide", False),
    ],
)
def test_calls_that_get_the_same_page(pool: str, first: str, one: str, second: str, other: str, same: bool) -> None:
    source = Source("pool.py", pool + USES.format(first=first, one=one, second=second, other=other), "python")
    assert bool(find([source], Options(codes=frozenset({"SL008"})), lowered).findings) is same
