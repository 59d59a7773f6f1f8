"""Texts that wait packed come back as they were."""

from __future__ import annotations

import pytest

from streamlint.runner.texts import Texts


@pytest.mark.parametrize("text", ["", "x = 1\r\n", "µ = '…'  # \U0001f600\n", "lone \udc80 surrogate"])
def test_a_text_comes_back(text: str) -> None:
    texts = Texts()
    texts["a.py"] = text
    assert texts["a.py"] == texts["a.py"] == text
    assert (list(texts), len(texts), texts.get("b.py")) == (["a.py"], 1, None)


def test_a_text_is_the_last_one_that_was_given() -> None:
    texts = Texts()
    texts["a.py"], texts["b.py"] = "1", "2"
    assert texts["a.py"] == "1"
    texts["a.py"] = "3"
    assert dict(texts) == {"a.py": "3", "b.py": "2"}
    del texts["a.py"]
    assert "a.py" not in texts
    with pytest.raises(KeyError):
        texts["a.py"]
