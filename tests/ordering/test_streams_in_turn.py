"""Streams that take turns: what orders the work of a round behind that of the one before."""

from __future__ import annotations

import pytest

from streamlint.config.options import Options, Source
from streamlint.frontends import python
from streamlint.hazards.findings import find
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower

TEXT = """import torch


def add(total, part):
    return torch.exp(part) + total


def run(parts, count, other: torch.cuda.Stream):
    lanes = {lanes}
    {first}
    total, last = torch.zeros(3, device="cuda"), None
    {before}
    for step, part in enumerate(parts):
        {wait}
        with torch.cuda.stream(lanes[step % {modulus}]):
            total = add(total, part)
            {after}
    return total
"""
MADE, GIVEN = "[torch.cuda.Stream() for _ in range(count)]", "[torch.cuda.current_stream(), other]"
EACH = "for lane in lanes: lane.wait_stream(torch.cuda.current_stream())"
NUMBERED = "for number, lane in enumerate(lanes): lane.wait_stream(torch.cuda.current_stream())"
RING = "lanes[step % {0}].wait_stream(lanes[(step - 1) % {0}])"
LAST = "if last is not None: lanes[step % {0}].wait_stream(last)"
MARK = "if last is not None: lanes[step % {0}].wait_event(last)"
MARKS = "marks = [torch.cuda.Event() for _ in range(count)]"
MARKED = "lanes[step % {0}].wait_event(marks[(step - 1) % {0}])"


def lowered(source: Source) -> ModuleIR:
    return lower(python.lower(source.path, source.text))


@pytest.mark.parametrize(
    ("lanes", "modulus", "first", "before", "wait", "after", "is_told"),
    [
        (MADE, "count", "pass", EACH, RING, "pass", False),
        (MADE, "count", "pass", NUMBERED, RING, "pass", False),
        (MADE, "count", "pass", EACH, "pass", "pass", True),
        (MADE, "count", "pass", "pass", RING, "pass", True),
        (MADE, "count", MARKS, EACH, MARKED, "marks[step % count].record()", False),
        (GIVEN, "2", "pass", EACH, RING, "pass", False),
        (GIVEN, "2", "pass", EACH, LAST, "last = lanes[step % 2]", False),
        (GIVEN, "2", "pass", EACH, MARK, "last = lanes[step % 2].record_event()", False),
        (GIVEN, "2", "pass", EACH, "pass", "pass", True),
    ],
)
def test_order_of_rounds(lanes: str, modulus: str, first: str, before: str, wait: str, after: str, is_told: bool) -> None:
    """A round adds to the sum of the one before, on another stream."""
    text = TEXT.format(lanes=lanes, modulus=modulus, first=first, before=before, wait=wait.format(modulus), after=after)
    found = find([Source("a.py", text, "python")], Options(codes=frozenset({"SL006"})), lowered)
    assert not found.faults
    assert bool(found.findings) is is_told


PARTS = """import torch


def run(parts, slots, lanes: list[torch.cuda.Stream]):
    total = torch.zeros(len(lanes), device="cuda")
    for lane in lanes:
        lane.wait_stream(torch.cuda.current_stream())
    for number, part in enumerate(parts):
        with torch.cuda.stream(lanes[number]):
            total[{index}] = torch.exp(part)
    for lane in lanes:
        torch.cuda.current_stream().wait_stream(lane)
    return total
"""


@pytest.mark.parametrize(
    ("index", "is_told"),
    [("number", False), ("2 * number + 1", False), ("number : number + 1", False), ("slots[number]", False), ("0", True), ("-1", True)],
)
def test_elements_of_rounds(index: str, is_told: bool) -> None:
    """Rounds on streams of their own write an element each, or all the same one."""
    found = find([Source("a.py", PARTS.format(index=index), "python")], Options(codes=frozenset({"SL006"})), lowered)
    assert not found.faults
    assert bool(found.findings) is is_told
