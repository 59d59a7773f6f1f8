"""What ``--coverage`` counts: calls that stayed opaque, and copies whose memory is known."""

from __future__ import annotations

from typing import Any

from streamlint.config.options import Options, Source
from streamlint.runner.engine import analyse

MODULE = """
import torch


class Tower(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("table", torch.zeros(width, width))

    def cuda(self, device=None):
        return super().cuda(device=device)


def build(width):
    return Tower(width).cuda()
"""

COPIES = """
import torch


def mixed(given, rows):
    first = torch.empty(rows, 4096, device="cuda")
    second = torch.empty(rows, 4096, device="cuda")
    second.copy_(first)
    third = torch.zeros(rows, 4096).to("cuda", non_blocking=True)
    return second, third, given.to("cuda", non_blocking=True)
"""


def coverage(text: str) -> dict[str, Any]:
    return dict(analyse([Source("example.py", text, "python")], Options(coverage=True)).coverage)


def test_what_a_class_has_from_a_module_of_the_library_is_known() -> None:
    found = coverage(MODULE)
    assert found["opaque"] == []
    assert found["copies"] == 0  # a module that moves is no tensor that is copied


def test_a_copy_within_the_device_is_known_and_a_parameter_is_not() -> None:
    found = coverage(COPIES)
    assert (found["copies_known"], found["copies"]) == (2, 3)
