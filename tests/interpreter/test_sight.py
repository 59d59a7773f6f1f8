"""Objects that look the same to a body: a path that turned a decision of a constructor ends where the body would find what it has found."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint.frontends.python import lower
from streamlint.interpreter import snapshots
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.index import Program
from streamlint.interpreter.roots import roots_of
from streamlint.interpreter.run import Coverage, Settings
from streamlint.interpreter.sight import differences
from streamlint.interpreter.stakes import AtStake, Stake, Stakes
from streamlint.interpreter.values import Const, Opaque, Series, Stream, Value

MADE = """
import torch

device = 0

class Model:
    def __init__(self, other, fast, own):
        self.kept = torch.cuda.Stream()
        if fast:
            other.kept = torch.cuda.Stream(device)
        else:
            other.kept = torch.cuda.current_stream()
        if own:
            self.lane = torch.cuda.Stream()
        else:
            self.lane = torch.cuda.current_stream()

    def reads_kept(self, x):
        with torch.cuda.stream(self.kept):
            return x + 1

    def reads_lane(self, x):
        with torch.cuda.stream(self.lane):
            return x + 1
"""


def paths_of(method: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many paths a method is run on, and how many of them end before its body."""
    monkeypatch.setattr(snapshots, "FEWEST_STEPS", 0)
    program = Program()
    file = program.add(lower("a.py", MADE), models.builtin("python"))
    root = next(root for root in roots_of(file) if root.qualname == method)
    ended: list[snapshots.Made] = []
    real = snapshots.Unnoticed.__init__
    monkeypatch.setattr(snapshots.Unnoticed, "__init__", lambda self, kept: (ended.append(kept), real(self, kept))[1])
    nothing = Stake(lambda operation: False, ("tream",))
    explorer = Explorer(program, root, Coverage(), Settings(), Stakes(lambda: AtStake((nothing,))))
    return len(list(explorer.paths())), len(ended)


def test_a_body_that_finds_something_else_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths_of("Model.reads_lane", monkeypatch) == (2, 0)


def test_a_body_that_finds_the_same_under_the_name_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths_of("Model.reads_kept", monkeypatch) == (1, 1)


def test_what_is_current_and_what_modules_hold_is_looked_at_too() -> None:
    seen, held = snapshots._Seen, ("a.py", "size")
    lane = Stream("lane", "explicit", None, "torch", "torch.cuda.Stream")
    bare = seen(Const(1), {}, {})
    assert snapshots._differences(bare, seen(Const(1), {}, {held: Const(2)})) == ()  # asked for on one of the two ways
    assert snapshots._differences(bare, seen(Const(1), {"torch": lane}, {})) == (frozenset(),)
    assert snapshots._differences(seen(Const(1), {}, {held: Const(1)}), seen(Const(1), {}, {held: Const(2)})) == (frozenset(),)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Const(1), Const(1), True),
        (Const(1), Const(True), False),
        (Const(1), Opaque("x"), False),
        (Opaque("x"), Opaque("x"), True),
        (Opaque("x"), Opaque("y"), False),
        (Series([Const(1), Const(2)]), Series([Const(1), Const(2)]), True),
        (Series([Const(1), Const(2)]), Series([Const(1)]), False),
        (Opaque("x", attrs={"a": Opaque("x.a")}), Opaque("x"), True),  # it was asked for, and that is all
        (Opaque("x", attrs={"a": Const(1)}), Opaque("x"), False),
        (Opaque("x", attrs={"a": Opaque("x.a", attrs={"b": Const(1)})}), Opaque("x"), False),
        (Opaque("x", attrs={"a": Const(1)}), Opaque("x", attrs={"a": Const(2)}), False),
    ],
)
def test_values(one: Value, other: Value, same: bool) -> None:
    assert (differences(one, other) == ()) == same
    assert (differences(other, one) == ()) == same


def test_what_refers_to_itself() -> None:
    first, second = Series([]), Series([])
    for held in (first, second):
        assert held.items is not None
        held.items.append(held)
    assert differences(first, second) == ()
