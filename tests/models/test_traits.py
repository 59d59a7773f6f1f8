"""Traits: what rules ask of names besides the effects of calls."""

from __future__ import annotations

from typing import Any

import pytest

from streamlint.facts.files.program import Program, SourceFile
from streamlint.models import ModelError, builtin, load, load_file
from streamlint.models.tables import rows
from streamlint.models.traits import MEANINGS
from streamlint.support.shipped import model_files

OWN: dict[str, Any] = {"library": "torch", "trait": [{"names": ["acme.Array.peek", "*.glance"], "traits": ["to-host", "number"]}]}


def test_names_are_known_by_their_last_parts() -> None:
    models = load("python", (("own", OWN),))
    assert models.known("to-host") == builtin("python").known("to-host") | {"peek", "glance"}
    assert models.known("to-host", "size") == models.known("to-host") | models.known("size")
    assert {"acme.Array.peek", "torch.Tensor.item"} <= models.marked("number")


def test_what_both_languages_have_is_written_once() -> None:
    assert builtin("python").known("size") == builtin("cuda").known("size") != frozenset()


def test_a_file_goes_by_the_rows_of_its_language() -> None:
    program = Program([SourceFile("a.py", "python", "", lambda: None), SourceFile("a.cu", "cuda", "", lambda: None)])
    program.tell("python", load("python", (("own", OWN),)))
    assert "peek" in program.units["a.py"].body.known("to-host")
    assert "peek" not in program.units["a.cu"].body.known("to-host")


@pytest.mark.parametrize("wrong", ["to-hosts", [], ["to-host", "nowhere"], 1])
def test_a_wrong_word_is_an_error(wrong: object) -> None:
    with pytest.raises(ModelError):
        list(rows({"trait": [{"names": "acme.f", "traits": wrong}]}, "trait", "own"))


@pytest.mark.parametrize("path", model_files(), ids=lambda path: path.stem)
def test_a_name_has_one_row_of_traits(path: Any) -> None:
    names = [name for found, _, _ in rows(load_file(path), "trait", path.name) for name in found]
    assert len(set(names)) == len(names)


def test_meanings_are_the_ends_of_sentences() -> None:
    assert [text for text in MEANINGS.values() if text.endswith(".") or not text[0].islower()] == []
