"""Where no path shows what a check begins with, another arm is run only if its code can bring it."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint.checks.base import Check, registry
from streamlint.frontends.python import lower
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.index import Program
from streamlint.interpreter.roots import roots_of
from streamlint.interpreter.run import Coverage, Settings
from streamlint.interpreter.stakes import AtStake, Stake, Stakes
from streamlint.operations import Copy, Operation, Spawn

ABOVE = """import torch

def upload(x):
    return x.to("cuda", non_blocking=True)

def quiet(x):
    torch.cuda.synchronize()

"""


def asynchronous(operation: Operation) -> bool:
    return isinstance(operation, Copy) and operation.asked_async


COPIES = Stake(asynchronous, ("non_blocking",))


def forced_on(body: str, *stakes: Stake) -> set[str]:
    """Which conditions are decided the other way on the paths of a function ``f``, where these stakes count."""
    program = Program()
    file = program.add(lower("a.py", f"{ABOVE}def f(a, b, c, x):\n{body}"), models.builtin("python"))
    root = next(root for root in roots_of(file) if root.qualname == "f")
    runs = Explorer(program, root, Coverage(), Settings(), Stakes(lambda: AtStake(stakes))).paths()
    return {"".join(sorted(atom.rpartition(":")[2] for atom in run.forced)) for run in runs}


ARMS = [
    ("    if a:\n        x = 1\n    else:\n        torch.cuda.synchronize()\n", {""}),
    ("    if a:\n        x = 1\n    else:\n        x.to('cuda', non_blocking=True)\n", {"", "a"}),
    ("    if a:\n        x = 1\n    else:\n        upload(x)\n", {"", "a"}),
    ("    if a:\n        x = 1\n    else:\n        quiet(x)\n", {""}),
    ("    if a:\n        torch.cuda.synchronize()\n        return\n    else:\n        quiet(x)\n        return\n", {"", "a"}),
]


@pytest.mark.parametrize(("body", "paths"), ARMS)
def test_an_arm_is_run_where_it_can_bring_what_is_at_stake(body: str, paths: set[str]) -> None:
    assert forced_on(body, COPIES) == paths


def test_all_arms_are_run_once_it_is_there() -> None:
    waits = "    if a:\n        torch.cuda.synchronize()\n"
    assert forced_on(waits, COPIES) == {""}
    assert forced_on("    x.to('cuda', non_blocking=True)\n" + waits, COPIES) == {"", "a"}


def test_what_was_passed_over_is_run_when_another_arm_brings_it() -> None:
    copies = "    if b:\n        x = 1\n    else:\n        torch.zeros(8).to('cuda', non_blocking=True)\n"
    body = "    if a:\n        torch.cuda.synchronize()\n" + copies
    assert forced_on(body, COPIES) == {"", "a", "b", "ab"}


def test_a_case_is_run_for_what_it_does() -> None:
    body = "    match c:\n        case 1:\n            torch.cuda.synchronize()\n        case 2:\n            quiet(x)\n"
    assert forced_on(body, COPIES) == {""}
    assert len(forced_on(body + "        case 3:\n            upload(x)\n", COPIES)) > 1


def test_without_signs_any_arm_may_bring_it() -> None:
    waits = "    if a:\n        torch.cuda.synchronize()\n"
    assert forced_on(waits, Stake(asynchronous, ())) == {"", "a"}


@pytest.mark.parametrize("check", [c for c in registry().values() if c.begins_with is not Check.begins_with or c.signs])
def test_a_check_that_names_one_names_the_other(check: type[Check]) -> None:
    assert check.signs
    assert check.begins_with is not Check.begins_with


@pytest.mark.parametrize(
    ("start", "runs"),
    [("self.x = x.to('cuda', non_blocking=True)", 1), ("threading.Thread(target=self.work).start()", 2)],
)
def test_what_a_constructor_has_done_is_over(start: str, runs: int) -> None:
    text = f"""import threading
import torch

class Holder:
    def __init__(self, x, wide):
        {start}
        self.wide = wide

    def work(self):
        torch.cuda.synchronize()

    def f(self, y):
        if self.wide:
            torch.cuda.synchronize()
        return y
"""
    program = Program()
    file = program.add(lower("a.py", text), models.builtin("python"))
    root = next(root for root in roots_of(file) if root.qualname == "Holder.f")
    stake = Stake(lambda operation: asynchronous(operation) or isinstance(operation, Spawn), ("non_blocking",))
    assert len(list(Explorer(program, root, Coverage(), Settings(), Stakes(lambda: AtStake((stake,)))).paths())) == runs
