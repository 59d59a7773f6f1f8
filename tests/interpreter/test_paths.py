"""How much of a root is run: paths for what a condition chooses, and rounds of loops in loops."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint import operations as ops
from streamlint.frontends.python import lower
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.index import Program
from streamlint.interpreter.roots import roots_of
from streamlint.interpreter.run import Coverage, Run, Settings


def paths(text: str) -> list[Run]:
    """The paths of a function ``f``."""
    program = Program()
    file = program.add(lower("a.py", f"import torch\n\n{text}"), models.builtin("python"))
    root = next(root for root in roots_of(file) if root.qualname == "f")
    return list(Explorer(program, root, Coverage(), Settings()).paths())


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("options = dict(a or {})\n    torch.cuda.synchronize()", 1),
        ("size = a if b else c\n    torch.cuda.synchronize()", 1),
        ("names = [n for n in a if n.startswith('x')]\n    torch.cuda.synchronize()", 1),
        # What is chosen is the device's.
        ("a = torch.cuda.Stream()\n    b = torch.cuda.Stream()\n    (a if c else b).synchronize()", 2),
        ("a = torch.zeros(8, device='cuda') if b else c\n    a.cpu()", 2),
        ("made = [torch.zeros(8, device='cuda') for n in a if n > b]", 3),
        # A chosen constant is tested where it matters, or given to the library.
        ("way = 'train' if a else 'eval'\n    if way == 'train':\n        torch.cuda.synchronize()", 2),
        ("way = 'train' if a else 'eval'\n    if way == 'train':\n        print(b)", 1),
        ("flag = True if a else False\n    b.to('cuda', non_blocking=flag)", 2),
        # The same is asked again, where it matters.
        ("size = b if a else c\n    if a:\n        torch.cuda.synchronize()", 2),
        # The same, where the first question chose nothing that matters.
        ("if a:\n        b = 1\n    else:\n        b = 2\n    if a:\n        torch.cuda.synchronize()", 2),
        # What is one thing is no other; what is among some is none of the others.
        ("if a == 1:\n        torch.cuda.synchronize()\n    if a == 2:\n        b.cpu()", 3),
        ("if a == 1:\n        torch.cuda.synchronize()\n    if c == 2:\n        b.cpu()", 4),
        ("if a in (1, 2):\n        b.cpu()\n        if a == 3:\n            b.cuda()", 2),
        ("if a not in (1, 2):\n        raise ValueError\n    if a != 1:\n        if a != 2:\n            b.cpu()\n    b.cuda()", 2),
        # The `get` of a dict is no copy of an array.
        ("if a:\n        b = c.get('depth')\n    torch.cuda.synchronize()", 1),
        ("if a:\n        b = c.get(DEPTH)\n    torch.cuda.synchronize()", 1),
        ("if a:\n        b = c.get(stream)\n    torch.cuda.synchronize()", 2),
        # Words that only look like one that matters.
        ("if a:\n        b.streaming = c.hit_copy_threads\n    torch.cuda.synchronize()", 1),
        ("if a:\n        b.copy_(c)\n    torch.cuda.synchronize()", 2),
        # A layer and a data type are no memory and no order; a layer on the device is.
        ("layer = torch.nn.Linear(8, 8) if a else torch.nn.Identity()\n    torch.cuda.synchronize()", 1),
        ("kind = torch.float16 if a else torch.float32\n    torch.cuda.synchronize()", 1),
        ("layer = torch.nn.Linear(8, 8).to('cuda') if a else torch.nn.Identity()\n    torch.cuda.synchronize()", 2),
        ("x = torch.zeros(8) if a else torch.ones(8)\n    torch.cuda.synchronize()", 2),
    ],
)
def test_a_choice_has_its_own_path_where_what_it_chooses_matters(body: str, number: int) -> None:
    assert len(paths(f"def f(a, b, c):\n    {body}\n")) == number


@pytest.mark.parametrize(("called", "number"), [("torch.sum(c)", 1), ("sum(c)", 2), ("c.sum()", 2)])
def test_the_name_of_a_library_is_no_function_at_hand(called: str, number: int) -> None:
    text = f"def sum(x):\n    torch.cuda.synchronize()\n\n\ndef f(a, b, c):\n    if a:\n        b = {called}\n    c.cpu()\n"
    assert len(paths(text)) == number


@pytest.mark.parametrize(("arm", "number"), [("c.launch = 1", 3), ("torch.cuda.empty_cache()", 4)])
def test_a_ring_has_its_last_round_on_paths_that_show_something_new(arm: str, number: int) -> None:
    loop = "    turn = 0\n    for x in a:\n        turn = (turn + 1) % 2\n        torch.cuda.synchronize()\n"
    assert len(paths(f"def f(a, b, c):\n    if b:\n        {arm}\n{loop}")) == number


def rounds(text: str) -> int:
    """How often the first path waits for the device."""
    return sum(isinstance(operation, ops.Synchronize) for operation in paths(text)[0].machine.operations)


def test_loops_in_loops_run_once_in_later_rounds() -> None:
    nested = "def f(a, b, c):\n  for x in a:\n    for y in b:\n      for z in c:\n        torch.cuda.synchronize()\n"
    assert rounds(nested) == 4
    called = "def g(b):\n  for y in b:\n    torch.cuda.synchronize()\n\n\ndef f(a, b):\n  while a.more():\n    g(b)\n"
    assert rounds(called) == 3


def test_loops_one_after_the_other_run_twice_each() -> None:
    assert rounds("def f(a, b):\n  for x in a:\n    torch.cuda.synchronize()\n  for y in b:\n    torch.cuda.synchronize()\n") == 4


def test_a_known_length_is_kept_in_later_rounds() -> None:
    assert rounds("def f(a):\n  for x in a:\n    for y in range(3):\n      torch.cuda.synchronize()\n") == 6
