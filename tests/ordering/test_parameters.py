"""Parameters that an object has kept in a container are those of the module from which it has them."""

from __future__ import annotations

import pytest

from streamlint.config.options import Options, Source
from streamlint.frontends import python
from streamlint.hazards.findings import find
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower

TEXT = """import torch


class Kept:
    def __init__(self, net: torch.nn.Module, other: torch.nn.Module, lane: torch.cuda.Stream):
        self.net = net
        self.other = other
        self.lane = lane
        self.weights = {made}

    def run(self, hidden):
        with torch.cuda.stream(self.lane):
            for {target} in {each}:
                weight.data = weight.data.to("cuda", non_blocking=True)
        {wait}
        return self.net(hidden)
"""
WAIT = "torch.cuda.current_stream().wait_stream(self.lane)"


def lowered(source: Source) -> ModuleIR:
    return lower(python.lower(source.path, source.text))


@pytest.mark.parametrize(
    ("made", "target", "each", "wait", "rows"),
    [
        ("list(net.parameters())", "weight", "self.weights", "pass", [16]),
        ("list(net.parameters())", "weight", "self.weights", WAIT, []),
        ("list(other.parameters())", "weight", "self.weights", "pass", []),
        ("dict(self.net.named_parameters())", "name, weight", "self.weights.items()", "pass", [16]),
        ("{weight: weight.shape for weight in self.net.parameters()}", "weight, shape", "self.weights.items()", "pass", [16]),
        ("{weight: weight.shape for weight in self.net.parameters()}", "weight", "self.weights", "pass", [16]),
        ("{weight: weight.shape for weight in self.other.parameters()}", "weight", "self.weights", "pass", []),
    ],
)
def test_weights_of_a_module(made: str, target: str, each: str, wait: str, rows: list[int]) -> None:
    """The module's own work meets the copies into its parameters."""
    text = TEXT.format(made=made, target=target, each=each, wait=wait)
    found = find([Source("a.py", text, "python")], Options(codes=frozenset({"SL006"})), lowered)
    assert [one.span.row for one in found.findings] == rows
