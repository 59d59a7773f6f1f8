"""What decorators of libraries say of a function: by their rows, under any name."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.facts.code.objects import FunctionObject
from streamlint.facts.repetition.decoding import keeps_no_gradients


@pytest.mark.parametrize(
    ("imports", "decorator", "keeps_none"),
    [
        ("import torch", "torch.no_grad()", True),
        ("import torch", "torch.inference_mode", True),
        ("from torch import no_grad", "no_grad()", True),
        ("import torch as t", "t.no_grad()", True),
        ("import torch", "torch.enable_grad()", False),
        ("from acme import no_grad", "no_grad()", False),
    ],
)
def test_gradients(imports, decorator, keeps_none):
    facts = facts_of(main=f"{imports}\n\n@{decorator}\ndef step(x):\n    return x\n")
    assert keeps_no_gradients(facts, function(facts, "main", "step")) is keeps_none


@pytest.mark.parametrize(
    "decorator",
    [
        "torch.no_grad()",
        "torch.enable_grad()",
        "torch.autocast('cuda')",
        "torch.compile",
        "torch.compile()",
        "torch.compile(dynamic=True)",
        "torch.compiler.disable(recursive=False)",
        "torch.amp.custom_fwd(device_type='cuda')",
        "torch.jit.script",
        "torch.jit.ignore",
    ],
)
def test_a_decorated_function_is_itself(decorator):
    facts = facts_of(main=f"import torch\n\n@{decorator}\ndef step(x):\n    return x\n")
    held = facts.global_values(facts.program.units["main.py"], "step")
    assert [value.function.name for value in held if isinstance(value, FunctionObject)] == ["step"]
