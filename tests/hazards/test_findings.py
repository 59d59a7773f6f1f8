"""What rules over a whole program cost each other: nothing."""

from __future__ import annotations

import importlib

import pytest

from streamlint.frontends import python
from streamlint.hazards.findings import find_of
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower
from streamlint.options import Options, Source

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
    told = find_of(["SL005", "SL024"], [SOURCE], Options(), lowered)
    assert [one.code for one in told.findings] == ["SL024"]
    assert told.faults == {"SL005": "ValueError: odd"}
