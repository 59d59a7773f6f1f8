"""Which states of a walk are looked at."""

from __future__ import annotations

from facts.programs import facts_of, function

from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import MOST_ALIKE, MOST_HERE, Merged, State
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import Place

FRAME = Frame(function(facts_of(a="def f(x):\n    return x\n"), "a", "f"), None, None, 0)
ASKED = [(FRAME, (number,), True) for number in range(20)]


def state(*decided: int, guesses: int = 0, name: str = "x") -> State:
    tracked = frozenset({Tracked(BUFFER, Place(("parameter", 0), (name,)))})
    return State(FRAME, 0, 0, 0, tracked, guesses, frozenset(), frozenset(ASKED[one] for one in decided), ())


def test_what_takes_more_for_granted_finds_nothing_new() -> None:
    merged = Merged()
    assert merged.added(state(1)) is not None
    assert merged.added(state(1, 2)) is None
    assert merged.added(state(1, guesses=1)) is None
    assert merged.added(state(2)) == state(2)
    assert merged.added(state()) == state()


def test_what_is_tracked_tells_states_apart() -> None:
    merged = Merged()
    assert merged.added(state(1)) is not None
    assert merged.added(state(1, name="y")) is not None


def test_of_many_that_differ_by_branches_one_takes_for_granted_what_all_do() -> None:
    merged = Merged()
    for one in range(1, MOST_ALIKE + 1):
        assert merged.added(state(0, one)) == state(0, one)
    assert merged.added(state(0, 10)) == state(0)
    assert merged.added(state(0, 11)) is None
    assert not merged.is_cut


def test_a_place_is_looked_at_in_so_many_states() -> None:
    merged = Merged()
    for one in range(MOST_HERE):
        assert merged.added(state(name=f"x{one}")) is not None
    assert merged.added(state(name="x0")) is None
    assert not merged.is_cut
    assert merged.added(state(name="y")) is None
    assert merged.is_cut
