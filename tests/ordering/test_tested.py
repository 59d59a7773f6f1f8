"""What a branch on `isinstance` says of a value."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.ir import opcodes as op
from streamlint.waits.tested import is_of_host

HEAD = "import numpy as np\nimport torch\nimport cupy\n\ndef f(x, y, late):\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    if isinstance(x, np.ndarray):\n        x.astype(y)\n", True),
        ("    if isinstance(x, (np.bool_, float)):\n        if late:\n            x.astype(y)\n", True),
        ("    if not isinstance(x, np.generic):\n        return\n    x.astype(y)\n", True),
        ("    if isinstance(x, np.ndarray):\n        return\n    x.astype(y)\n", False),
        ("    if isinstance(x, (np.ndarray, torch.Tensor)):\n        x.astype(y)\n", False),
        ("    if isinstance(x, cupy.ndarray):\n        x.astype(y)\n", False),
        ("    if isinstance(y, np.ndarray):\n        x.astype(y)\n", False),
        ("    if late or isinstance(x, np.ndarray):\n        x.astype(y)\n", False),
    ],
)
def test_types_of_the_host(body: str, expected: bool) -> None:
    facts = facts_of(a=HEAD + body)
    used = function(facts, "a", "f")
    (call,) = used.by_opcode[op.INVOKE]
    assert is_of_host(facts, used, call, call[3]) == expected
