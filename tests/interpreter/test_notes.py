"""Questions stand beside the answers that they were asked for, and go with them."""

from __future__ import annotations

import pytest

from streamlint.interpreter.notes import Kept, aside, begin, kept, kept_in_rounds, note, noted, remembered


def asked() -> list[str]:
    """What was asked since the last `begin`, each once."""
    return sorted({row[0] for row in noted().rows()})


def test_who_is_given_an_answer_is_given_its_questions() -> None:
    table: dict[str, Kept[int]] = {}

    def work() -> int:
        note(("a module",))
        return 7

    for _ in range(2):
        begin()
        assert asked() == []
        assert kept(table, "key", work) == 7
        assert asked() == ["a module"]


def test_what_asked_nothing_has_no_notes() -> None:
    table: dict[str, Kept[int]] = {}
    inner: dict[str, Kept[int]] = {}
    begin()
    assert kept(table, "key", lambda: kept(inner, "key", lambda: 3)) == 3
    assert (table["key"], inner["key"]) == ((3, None), (3, None))


def test_a_piece_has_the_notes_of_its_parts_and_of_no_other() -> None:
    table: dict[str, Kept[str]] = {}

    def one(name: str) -> str:
        note((name,))
        return name

    begin()
    kept(table, "left", one, "left")
    kept(table, "right", one, "right")
    kept(table, "both", lambda: kept(table, "left", one, "left") + kept(table, "right", one, "right"))
    begin()
    kept(table, "left", one, "left")
    assert asked() == ["left"]
    kept(table, "both", one, "both")
    assert asked() == ["left", "right"]


def test_pieces_that_lead_to_each_other_have_the_notes_of_both() -> None:
    table: dict[str, Kept[bool]] = {}
    calls = {"even": "odd", "odd": "even"}

    def work(name: str) -> bool:
        note((name,))
        return kept_in_rounds(table, calls[name], False, work, calls[name])

    begin()
    kept_in_rounds(table, "even", False, work, "even")
    for name in calls:
        begin()
        kept_in_rounds(table, name, False, work, name)
        assert asked() == ["even", "odd"], name


def test_work_that_fails_is_done_again() -> None:
    table: dict[str, Kept[int]] = {}
    attempts: list[int] = []

    def work() -> int:
        attempts.append(1)
        note(("asked",))
        if len(attempts) == 1:
            raise RecursionError
        return 5

    begin()
    with pytest.raises(RecursionError):
        kept_in_rounds(table, "key", 0, work)
    assert asked() == []
    assert kept_in_rounds(table, "key", 0, work) == 5
    assert asked() == ["asked"]


def test_a_remembered_function_hands_its_questions_on() -> None:
    @remembered(8)
    def work(name: str, *, loudly: bool = False) -> str:
        note((name,))
        return name.upper() if loudly else name

    for _ in range(2):
        begin()
        assert (work("a"), work("b", loudly=True)) == ("a", "B")
        assert asked() == ["a", "b"]


def test_nobody_is_told_what_is_asked_aside() -> None:
    begin()
    with aside():
        note(("hidden",))
    assert asked() == []
