"""Two ranks serve all cases of a child: rank 1 goes from one work to the next."""

from __future__ import annotations

from typing import Any

import pytest

from streamlint.verify.templates._ranks import Ranks, Work, do_works


class Orders:
    """A pipe: what rank 0 sent is what rank 1 receives; then the child has ended."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, what: Any) -> None:
        self.sent.append(what)

    def recv(self) -> Any:
        if not self.sent:
            raise EOFError
        return self.sent.pop(0)


def adds(done: list[object], orders: Orders, amount: int) -> None:
    while order := orders.recv():
        done.append(order + amount)


def says(done: list[object], orders: Orders) -> None:
    done.append("begins")
    while orders.recv():
        done.append("says")


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> Orders:
    """What goes to rank 1 of ranks that were made without a GPU."""
    made: Any = object.__new__(Ranks)
    made._orders, made._works = Orders(), None
    monkeypatch.setattr(Ranks, "_made", made)
    return made._orders  # type: ignore[no-any-return]


def test_a_work_goes_on_with_the_same_parameters(orders: Orders) -> None:
    lab: Any = None
    for order in (1, 2):
        Ranks.at(adds, lab, 10).order(order)
    assert orders.sent == [(adds, (10,)), 1, 2]


def test_rank_1_does_one_work_after_the_other(orders: Orders) -> None:
    lab: Any = None
    given: list[tuple[Work, tuple[int, ...], object]] = [(adds, (10,), 1), (adds, (20,), 1), (says, (), "x"), (adds, (10,), 5)]
    for work, parameters, order in given:
        Ranks.at(work, lab, *parameters).order(order)
    done: list[object] = []
    do_works(done, orders)
    assert done == [11, 21, "begins", "says", 15]
