"""Functions that cannot show anything are not run: what they hold, and what they call, asks for no operation that a check begins with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlint import models
from streamlint.analysis import Analysis
from streamlint.checks.base import registry
from streamlint.frontends import UnreadableSource
from streamlint.frontends.python import lower
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.index import Program
from streamlint.interpreter.run import Coverage
from streamlint.interpreter.stakes import Stakes
from streamlint.options import Options

DOCUMENTS = sorted((Path(__file__).parents[1] / "rules").glob("*.md"))
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ABOVE = """import torch
import json
import library
import numpy as np

WEIGHTS = torch.ones(8, device="cuda")
LIMIT = 8

def upload(x):
    return x.to("cuda", non_blocking=True)

def hand_on(x):
    return upload(x)

def double(x):
    return x * 2

class Held:
    def fetch(self, x):
        return upload(x)

"""


def analysis(text: str, coverage: bool = False) -> Analysis:
    program = Program()
    program.add(lower("a.py", text), models.builtin("python"))
    program.add(lower("library.py", "import torch\n\ndef make(x):\n    return torch.ones(x, device='cuda')\n"), models.builtin("python"))
    return Analysis(program, Options(codes=frozenset(registry()), coverage=coverage))


def test_annotations_may_name_what_is_at_hand() -> None:
    assert passed_over(f"{ABOVE}def f(x: Held):\n    return x.y\n\ndef g(x: 'Held'):\n    return x.y\n").isdisjoint("fg")
    assert "f" in passed_over(f"{ABOVE}def f(x: int, y: list[str]):\n    return x + 1\n")


def passed_over(text: str, coverage: bool = False) -> set[str]:
    """The functions of a module that are not run."""
    asked = analysis(text, coverage)
    file = asked.program.files["a.py"]
    found = set()
    for root in asked.roots(file):
        counted = Coverage()
        list(asked._check_root(root, FileFacts(file), counted))
        if not counted.runs:
            found.add(root.qualname)
    return found


@pytest.mark.parametrize(
    "body",
    [
        "total = x + 2\n    return total\n",
        'return x.split(".")[0] + "-1"\n',
        "return double(x)\n",
        "for each in x:\n        print(each)\n",
        "return LIMIT + sorted(x, key=lambda each: each[0])[0]\n",
        "return json.dumps(x)\n",
        '"""It says cuda and non_blocking, and does nothing of it."""\n    return [each for each in x]\n',
    ],
)
def test_a_function_that_asks_for_nothing_is_not_run(body: str) -> None:
    assert passed_over(f"{ABOVE}def f(x):\n    {body}") >= {"f", "double"}


@pytest.mark.parametrize(
    "body",
    [
        'return x.to("cuda", non_blocking=True)\n',
        "return upload(x)\n",
        "return hand_on(x)\n",
        "return [hand_on(each) for each in x]\n",
        "def inside():\n        return upload(x)\n    return inside\n",
        "return x.fetch(x)\n",
        "return map(upload, x)\n",
        "with x.side:\n        return x * 2\n",
        "return WEIGHTS * x\n",
        "return [WEIGHTS for WEIGHTS in x] and WEIGHTS.sum()\n",
        "return library.make(x)\n",
        "return Held().fetch\n",
        "return UNKNOWN * x\n",
        "global LIMIT\n    LIMIT = x\n",
        "for batch in x.loader:\n        loss = x.model(batch)\n        loss.backward()\n        x.optimizer.step()\n",
    ],
)
def test_a_function_that_asks_for_something_is_run(body: str) -> None:
    assert "f" not in passed_over(f"{ABOVE}def f(x):\n    {body}")


def test_what_was_understood_is_counted_in_every_function() -> None:
    assert passed_over(f"{ABOVE}def f(x):\n    return x + 1\n", coverage=True) == set()


def sources() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        for number, found in enumerate(FENCE.finditer(document.read_text(encoding="utf-8"))):
            yield f"{document.stem}-{number}", found[1]


def test_what_is_passed_over_shows_nothing_that_a_check_begins_with() -> None:
    count = 0
    for name, text in sources():
        try:
            asked = analysis(text)
        except UnreadableSource:
            continue
        for root in asked.roots(asked.program.files["a.py"]):
            if asked._is_quiet(root):
                count += 1
                explorer = Explorer(asked.program, root, Coverage(), asked.settings)
                stake = asked._at_stake(root)
                shown = [run for run in explorer.paths() if Stakes(lambda stake=stake: stake).look(run)]
                assert shown == [], f"{name}: {root.qualname}"
    assert count >= 20
