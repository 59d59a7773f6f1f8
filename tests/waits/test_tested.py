"""What branches say of values: of a type of the host, or no tensor."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.ir import opcodes as op
from streamlint.waits.tested import is_of_host


@pytest.mark.parametrize(
    ("asked", "is_host"),
    [
        ("not torch.is_tensor(x)", True),
        ("torch.is_tensor(x)", False),
        ("not torch.is_tensor(y)", False),
        ("not is_tensor(x)", True),
        ("isinstance(x, float)", True),
        ("not isinstance(x, torch.Tensor)", True),
        ("isinstance(x, torch.Tensor)", False),
        ("x is not None", False),
    ],
)
def test_a_branch_tells_the_kind(asked, is_host):
    text = f"import torch\nfrom torch import is_tensor\n\ndef read(x, y):\n    if {asked}:\n        return float(x)\n    return 0.0\n"
    facts = facts_of(main=text)
    one = function(facts, "main", "read")
    call = next(call for call in one.by_opcode[op.CALL] if one.dotted(call[3]) == "float")
    assert is_of_host(facts, one, call, call[5]) is is_host


def test_what_runs_behind_the_test_is_not_told():
    text = "import torch\n\ndef read(x):\n    if not torch.is_tensor(x):\n        print(x)\n    return float(x)\n"
    facts = facts_of(main=text)
    one = function(facts, "main", "read")
    call = next(call for call in one.by_opcode[op.CALL] if one.dotted(call[3]) == "float")
    assert not is_of_host(facts, one, call, call[5])
