"""Which files are read: the words of the models' heads, and what looks for them."""

from __future__ import annotations

import pytest

from streamlint.config.settings import parse_toml
from streamlint.discovery import triggers
from streamlint.support.shipped import MODELS, head_of

HEADS = sorted(MODELS.glob("*.toml"))


@pytest.mark.parametrize("path", HEADS, ids=[path.stem for path in HEADS])
def test_a_head_read_by_hand_is_what_toml_says(path):
    said = parse_toml(path.read_bytes().partition(b"\n[")[0], path.name)
    assert head_of(path) == {key: value for key, value in said.items() if isinstance(value, (str, list))}


@pytest.mark.parametrize("language", ["python", "cuda", "cython"])
def test_each_word_is_found_alone_and_nothing_is_found_without_one(language):
    relevant = triggers.relevant(language)
    assert len(triggers.builtin(language)) > 20
    assert [word for word in triggers.builtin(language) if not relevant(b"x = 1\n" + word.encode() + b"\n")] == []
    assert not relevant(b"import torch\n\n\ndef f(x):\n    return x.to(device) + 1\n")
