"""Places of nodes are held as numbers, and read as they were given."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamlint.frontends.python import lower
from streamlint.program import NOWHERE, Call, Name, walk
from streamlint.program.positions import packed, unpacked

_NUMBERS = st.one_of(st.integers(-2, 300), st.integers(4090, 4100), st.integers(16380, 16390), st.integers(0, 1 << 40))


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first draw of a busy machine
@given(st.tuples(_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS))
def test_what_is_packed_comes_back(at: tuple[int, int, int, int]) -> None:
    assert unpacked(packed(at)) == at
    assert Name("x", at=at).at == at


@pytest.mark.parametrize("at", [NOWHERE, (1, 1, 1, 2), (1, 1, 16384, 4095), (1 << 20, 4095, 1 << 20, 4095)])
def test_usual_places_are_one_number(at: tuple[int, int, int, int]) -> None:
    assert isinstance(packed(at), int)


@pytest.mark.parametrize("at", [(1, 4096, 1, 4097), (1, 1, 16385, 1), (2, 1, 1, 1), (-1, 1, -1, 1)])
def test_others_are_held_as_they_are(at: tuple[int, int, int, int]) -> None:
    assert packed(at) == at


def test_a_line_of_any_length() -> None:
    module = lower("a.py", f"x = [{'y, ' * 3000}f(z)]\n")
    call = next(node for node in walk(module.body[0]) if isinstance(node, Call))
    assert call.at == (1, 9006, 1, 9010)
    assert pickle.loads(pickle.dumps(call)).name_at == call.name_at == (1, 9006, 1, 9007)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a.b()()[0]()(1)", (1, 3, 1, 4)),
        ("f()[0][1](2)()", (1, 1, 1, 2)),
        ("x[0].y()[1]()", (1, 6, 1, 7)),
        ("(lambda: 1)()()", (1, 2, 1, 11)),
        ("x[0]()()", (1, 1, 1, 2)),
    ],
)
def test_what_a_call_gives_is_called_by_its_name(text: str, name: tuple[int, int, int, int]) -> None:
    assert {call.name_at for call in walk(lower("a.py", text)) if isinstance(call, Call)} == {name}
