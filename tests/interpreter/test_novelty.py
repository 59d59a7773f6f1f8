"""Two guesses are tried only on top of one that showed something new."""

from __future__ import annotations

from streamlint import models
from streamlint.frontends.python import lower
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.index import Program
from streamlint.interpreter.novelty import shown
from streamlint.interpreter.roots import roots_of
from streamlint.interpreter.run import Coverage, Settings


def forced_on(body: str) -> set[frozenset[str]]:
    """Which conditions are decided the other way together, on the paths of a function ``f``."""
    program = Program()
    file = program.add(lower("a.py", f"import torch\n\ndef f(a, b, c):\n{body}"), models.builtin("python"))
    root = next(root for root in roots_of(file) if root.qualname == "f")
    runs = Explorer(program, root, Coverage(), Settings()).paths()
    return {frozenset(atom.rpartition(":")[2] for atom in run.forced) for run in runs}


def test_a_way_that_shows_nothing_new_is_left_alone() -> None:
    same = "    if a:\n        c.event = 1\n    if b:\n        c.stream = 2\n"
    assert forced_on(same) == {frozenset(), frozenset("a"), frozenset("b")}


def test_a_way_that_shows_something_is_followed() -> None:
    waits = "    if a:\n        torch.cuda.synchronize()\n    if b:\n        c.copy_(c)\n"
    assert forced_on(waits) == {frozenset(), frozenset("a"), frozenset("b"), frozenset("ab")}


def test_what_a_path_shows_does_not_hang_on_the_numbers_of_its_values() -> None:
    program = Program()
    text = "import torch\n\ndef f(a):\n    x = torch.zeros(8, device='cuda')\n    if a:\n        b = [1]\n    return (x + 1).cpu()\n"
    file = program.add(lower("a.py", text), models.builtin("python"))
    root = next(root for root in roots_of(file) if root.qualname == "f")
    explorer = Explorer(program, root, Coverage(), Settings())
    first = explorer.run({}, 2)
    atom = next(iter(first.decisions))
    second = explorer.run({atom: not first.decisions[atom].arm}, 2)
    assert first.machine.operations
    assert shown(first) == shown(second)
