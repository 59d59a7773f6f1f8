"""What rules over a whole program cost each other: nothing."""

from __future__ import annotations

import importlib

import pytest

from streamlint.config.options import Options, Source
from streamlint.frontends import python
from streamlint.hazards.findings import find
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower
from streamlint.support.records import replace

SPIN = """import torch


def turn(done: torch.cuda.Event):
    while not done.query():
        pass
"""
SOURCE = Source("spin.py", SPIN, "python")


def lowered(source: Source) -> ModuleIR:
    return lower(python.lower(source.path, source.text))


def test_a_fault_in_one_rule_costs_that_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(importlib.import_module("streamlint.hazards.sl005"), "find", fail)
    told = find([SOURCE], Options(codes=frozenset({"SL005", "SL024"})), lowered)
    assert [one.code for one in told.findings] == ["SL024"]
    assert told.faults == {"SL005": "ValueError: odd"}


STAGED = """import torch


def load(rows):
    return torch.zeros(rows, 4096, 4096)


def send(rows):
    host = load(rows)
    return host.to("cuda", non_blocking=True)
"""
COPYING = """import torch
from {near} import load


def send(rows):
    host = load(rows)
    return host.to("cuda", non_blocking=True)
"""


def test_what_the_operations_of_some_files_meet_is_looked_for_in_all() -> None:
    sources = [Source("near.py", STAGED, "python"), Source("far.py", COPYING.format(near="near"), "python")]
    every = find(sources, Options(codes=frozenset({"SL001"})), lowered).findings
    asked = find(sources, Options(codes=frozenset({"SL001"})), lowered, asked={"far.py"}).findings
    assert {one.span.file for one in every} == {"near.py", "far.py"}
    assert asked == [replace(one, grounds=None) for one in every if one.span.file == "far.py"]  # trials of fixes rank nothing


FINALLY = """import torch


def settle(x):
    torch.cuda.default_stream().wait_event(torch.cuda.Event())
    y = x.cuda()
    try:
        y = y + 1
        return y
    finally:
        y = y + 2
        print(y[0])
"""


def test_what_a_finally_asks_by_itself_is_no_work_of_a_finding() -> None:
    source = Source("settle.py", FINALLY, "python")
    (told,) = find([source], Options(codes=frozenset({"SL018"})), lowered).findings
    assert {span.row for pair in told.pairs for span in pair} == {6, 8, 11, 12}
