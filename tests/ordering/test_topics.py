"""Comparisons of one value with several constants."""

from __future__ import annotations

import pytest

from streamlint.ir import opcodes as op
from streamlint.ordering.paths.topics import implied, topic
from streamlint.waits.questions import Key


def asks(name: str, constant: str, register: int = 4) -> Key:
    return (op.COMPARE, name, (register,), (op.CONST, constant, 1), 3)


@pytest.mark.parametrize(
    ("known", "holds", "asked", "truth"),
    [
        (asks("==", "1"), True, asks("==", "2"), False),
        (asks("==", "1"), True, asks("!=", "2"), True),
        (asks("==", "1"), False, asks("!=", "1"), True),
        (asks("!=", "1"), False, asks("==", "2"), False),
        (asks("==", "1"), False, asks("==", "2"), None),
        (asks("!=", "1"), True, asks("==", "1"), False),
        (asks("==", "1"), True, asks("==", "2", register=5), None),
        (asks("==", "1"), True, asks("==", "True"), None),
        (asks("==", "1"), True, asks("==", "1.0"), None),
        (asks("==", "ring"), True, asks("==", "tree"), False),
        (asks("<", "1"), True, asks("==", "2"), None),
    ],
)
def test_what_one_says_of_another(known: Key, holds: bool, asked: Key, truth: bool | None) -> None:
    assert implied(known, holds, asked) is truth


def test_comparisons_of_one_value_have_one_topic() -> None:
    assert topic(asks("==", "1")) == topic(asks("!=", "2"))
    assert topic(asks("==", "1")) != topic(asks("==", "1", register=5))
    register = (op.COMPARE, "==", (4,), (op.CONST,), 3)  # compared with register 0
    assert topic(register) == register
