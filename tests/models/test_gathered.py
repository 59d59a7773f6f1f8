"""What is gathered from all rows is found once, and anew where rows come."""

from __future__ import annotations

from streamlint.models import Models

CALL = {"effect": "synchronize", "of": "device"}


def rows(*names: str) -> dict[str, object]:
    return {"library": "lib", "call": [{**CALL, "names": [name]} for name in names]}


def waits(models: Models, word: str) -> list[str]:
    return [f"{word} {name}" for name in models.calls]


def test_it_is_found_once_for_each_question() -> None:
    models = Models()
    models.add(rows("lib.wait"), "a.toml")
    first = models.gathered(waits, "a")
    assert (first, models.gathered(waits, "b")) == (["a lib.wait"], ["b lib.wait"])
    assert models.gathered(waits, "a") is first


def test_rows_that_come_are_seen() -> None:
    models = Models()
    models.add(rows("lib.wait"), "a.toml")
    assert (models.gathered(waits, ""), [*models.with_effect("synchronize")]) == ([" lib.wait"], ["wait"])
    models.add(rows("lib.pause", "lib.Lane.pause"), "b.toml")
    assert len(models.gathered(waits, "")) == 3
    assert {name: len(found) for name, found in models.with_effect("synchronize").items()} == {"wait": 1, "pause": 2}


def test_others_have_their_own() -> None:
    first, second = Models(), Models()
    first.add(rows("lib.wait"), "a.toml")
    second.add(rows("lib.pause"), "a.toml")
    assert (first.gathered(waits, ""), second.gathered(waits, "")) == ([" lib.wait"], [" lib.pause"])
