"""What rounds of loops make and end, and what a loop inside them is."""

from __future__ import annotations

import pytest

from streamlint.config.options import Options, Source
from streamlint.frontends import python
from streamlint.hazards.findings import find
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower

LOCKED_IN_A_HELPER = """import torch

def lock(runtime, chunk):
    runtime.cudaHostRegister(chunk.data_ptr(), chunk.numel(), 0)

def push(chunks, buffer):
    runtime = torch.cuda.cudart()
    for chunk in chunks:
        lock(runtime, chunk)
        buffer.copy_(chunk, non_blocking=True)
        torch.cuda.synchronize()
        runtime.cudaHostUnregister(chunk.data_ptr())
"""
EMPTIED_BEHIND_A_LOOP = """import torch

class Encoder(torch.nn.Module):
    def convert(self, images):
        for image in images:
            self.encode(image.to("cuda"))
            for turn in range(2):
                {body}
            torch.cuda.empty_cache()
"""


def lowered(source: Source) -> ModuleIR:
    return lower(python.lower(source.path, source.text))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (LOCKED_IN_A_HELPER, [9]),
        (EMPTIED_BEHIND_A_LOOP.format(body="unrelated = turn * 2"), [9]),
        (EMPTIED_BEHIND_A_LOOP.format(body="torch.ones(4, device='cuda')"), []),
    ],
)
def test_allocations_of_rounds(text: str, rows: list[int]) -> None:
    told = find([Source("push.py", text, "python")], Options(codes=frozenset({"SL003"})), lowered)
    assert [one.span.row for one in told.findings] == rows
    assert not told.faults
