"""Which calls with the name of a round's are asked what they call: those that may be one by what the program names."""

from __future__ import annotations

import pytest

from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.rounds import Rounds
from tests.facts.programs import facts_of

OWN = """
    import torch

    class Game:
        def step(self):
            return torch.zeros(1)

    class Player:
        def __init__(self, game):
            self.game = game

        def play(self):
            self.game.step()
"""
MAY_BE = {
    "a class that is named": "import torch\nmade = torch.optim.SGD([])\ndef play(one):\n    one.step()\n",
    "a name that is put together": "import torch\nmade = getattr(torch.optim, 'S' + 'GD')\ndef play(one):\n    one.step()\n",
    "a module that is imported by its text": "import importlib, torch\nmade = importlib.import_module('torch.optim')\n"
    "def play(one):\n    one.step()\n",
    "what another library gives": "import deepspeed\nengine = deepspeed.initialize()[0]\ndef play(one):\n    one.step()\n",
    "a scaler": "from torch.cuda.amp import GradScaler\nscaler = GradScaler()\ndef play(one):\n    one.step(None)\n",
    "a member of the same value": "import torch\ndef play(one):\n    one.step()\n    one.zero_grad()\n",
    "a member, in another function": "import torch\ndef clear(one):\n    one.zero_grad()\ndef play(one):\n    one.step()\n    clear(one)\n",
    "a function that it is given": "import torch\ndef play(one, closure):\n    one.step(closure)\n",
    "a tensor of unknown make": "import torch\ndef play(one):\n    one.backward()\n",
    "a tensor without any name of its class": "import torch\ndef play(one):\n    torch.ones(1, requires_grad=True).sum().backward()\n",
    "a bound method": "import torch\ndef play(one):\n    run = one.backward\n    run()\n",
}
MAY_NOT = {
    "a class of the program": OWN,
    "no library": "def play(one):\n    one.step()\n",
    "another library": "import itertools\ndef play(one):\n    return list(itertools.accumulate(one))\n",
    "what it gives is worked with": "import torch\ndef play(one):\n    return one.step() + 1\n",
    "a member of another value": "import torch\ndef clear(other):\n    other.zero_grad()\ndef play(one):\n    one.step()\n",
    "a number that it is given": "import torch\ndef play(one):\n    one.step(3)\n",
}


def asked(text: str) -> list[str]:
    graph = CallGraph(facts_of(a=text))
    functions = [function for unit in graph.facts.program.units.values() for function in unit.functions]
    return [function.code.name for function in Rounds(graph).candidates(functions)]


@pytest.mark.parametrize("text", MAY_BE.values(), ids=MAY_BE.keys())
def test_what_may_be_a_round_is_asked(text: str) -> None:
    assert asked(text) == ["play"]


@pytest.mark.parametrize("text", MAY_NOT.values(), ids=MAY_NOT.keys())
def test_what_cannot_be_one_is_not(text: str) -> None:
    assert asked(text) == []


def test_an_optimizer_of_the_program_takes_the_place_of_the_librarys() -> None:
    text = "from torch.optim import Optimizer\nclass Mine(Optimizer):\n    def step(self):\n        pass\ndef play(one):\n    one.step()\n"
    assert asked(text) == ["play"]
