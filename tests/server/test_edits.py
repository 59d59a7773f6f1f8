"""Edits of a part give the text that the editor has."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import count

from streamlint.server.positions import applied

LETTERS = st.text(st.sampled_from("ab \t\n\r\x0c\x1d\u0085\u2028é€𝄞😀"), max_size=12)
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def position(text: str, offset: int, encoding: str) -> tuple[int, int]:
    """Line and character of an offset, counted letter by letter."""
    line = start = at = 0
    while at < offset:
        if text[at] in "\r\n":
            at += 2 if text[at : at + 2] == "\r\n" else 1
            line, start = line + 1, at
        else:
            at += 1
    codec, size = CODECS[encoding]
    return line, len(text[start:offset].encode(codec)) // size


def places(text: str) -> list[int]:
    """Where an editor can stand: not between the two letters of one line end."""
    return [at for at in range(len(text) + 1) if text[at - 1 : at + 1] != "\r\n" or not at]


@settings(max_examples=count(few=150, many=1000), deadline=None)
@given(st.data(), st.sampled_from(sorted(CODECS)))
def test_random_edits_give_the_same_text_as_whole_ones(data: st.DataObject, encoding: str) -> None:
    text = data.draw(LETTERS)
    first = server = text
    edits = []
    for _ in range(data.draw(st.integers(1, 6))):
        new = data.draw(LETTERS)
        if data.draw(st.integers(0, 9)) == 0:
            text, edit = new, (None, new)
        else:
            start, end = sorted(data.draw(st.tuples(st.sampled_from(places(text)), st.sampled_from(places(text)))))
            edit = ((*position(text, start, encoding), *position(text, end, encoding)), new)
            text = text[:start] + new + text[end:]
        edits.append(edit)
        server = applied(server, [edit], encoding)
        assert server == text
    assert applied(first, edits, encoding) == text


@pytest.mark.parametrize(
    ("place", "result"),
    [
        ((0, 99, 0, 99), "a𝄞+\r\nb"),
        ((9, 0, 9, 9), "a𝄞\r\nb+"),
        ((-1, -5, 0, 0), "+a𝄞\r\nb"),
        ((1, 0, 0, 1), "a+b"),
        ((0, 2, 0, 3), "a+\r\nb"),
    ],
    ids=["behind a line", "behind the text", "below zero", "the wrong way round", "within a letter"],
)
def test_places_that_are_none(place: tuple[int, int, int, int], result: str) -> None:
    assert applied("a𝄞\r\nb", [(place, "+")], "utf-16") == result
