"""What a module's parameters are called, beside the parameters themselves."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.facts.graph.facts import describe

NET = "import torch\nclass Net(torch.nn.Module):\n    pass\ndef use(name, weight): pass\nnet = Net()\n"
LOOP = "\n    use(name, weight)\n"


@pytest.mark.parametrize(
    "text",
    [
        f"for name, weight in net.named_parameters():{LOOP}",
        f"for number, (name, weight) in enumerate(net.named_buffers()):{LOOP}",
        f"for name, weight in dict(net.named_parameters()).items():{LOOP}",
        f"for name, weight in net.state_dict().items():{LOOP}",
        "pair = list(net.named_parameters())[0]\nuse(pair[0], pair[1])\n",
        "for pair in net.named_parameters():\n    use(*pair)\n",
    ],
)
def test_a_name_is_text_and_a_parameter_a_tensor(text: str) -> None:
    facts = facts_of(main=NET + text)
    use = function(facts, "main", "use")
    name, weight = ({words for value in facts.argument(use, index).values for words in describe(value)} for index in (0, 1))
    assert not any("Tensor" in words for words in name), name
    assert any("Tensor" in words for words in weight), weight
    assert not any("text" in words for words in weight), weight
