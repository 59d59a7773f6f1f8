"""Questions to a program about all of its files, which each file of very many may ask."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint.frontends.python import lower
from streamlint.interpreter import index
from streamlint.interpreter.index import Program
from streamlint.interpreter.words import Words


def program_of(**texts: str) -> Program:
    program = Program()
    for name, text in texts.items():
        program.add(lower(f"{name}.py", text), models.builtin("python"))
    return program


def test_texts_are_searched_once_for_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of(a="stream = 1\n", b="event = 1\n", c="stream = event = 1\n")
    asked: list[Words] = []
    real = index.mentioning
    monkeypatch.setattr(index, "mentioning", lambda texts, words: (asked.append(words), real(texts, words))[1])
    for file in list(program.files.values()):
        assert [each.path for each in program.mentioning(file, "stream")] == ["a.py", "c.py"]
        assert [each.path for each in program.saying(file, "stream")] == ["a.py", "c.py"]
        assert [each.path for each in program.mentioning(file, "stream", every=("event",))] == ["c.py"]
    assert asked == [(("stream",), ()), (("stream",), ("event",))]
    assert program.consulted.texts["b.py"] == {(("stream",), ()), (("stream",), ("event",))}


def test_what_comes_later_is_searched_as_well() -> None:
    program = program_of(a="stream = 1\n", b="stream = 2\n")
    (first, _) = program.files.values()
    assert len(program.mentioning(first, "stream")) == 2
    program.add(lower("c.py", "stream = 3\n"), models.builtin("python"))
    assert len(program.mentioning(first, "stream")) == 3
    program.add(lower("b.py", "event = 3\n"), models.builtin("python"))  # with another text
    assert [file.path for file in program.mentioning(first, "stream")] == ["a.py", "c.py"]


def test_the_parts_of_a_file() -> None:
    program = program_of(a="x = 1\n", b="x = 1\n")
    for key in ("a.py#inline1", "b.py#inline1", "a.py#inline2", "odd#inline.py", "odd#inline.py#inline1"):
        program.files[key] = program.files["a.py"]
    program.files["a.py"] = program.files["b.py"]
    assert program.files.of("a.py") == ["a.py", "a.py#inline1", "a.py#inline2"]
    assert program.files.of("b.py") == ["b.py", "b.py#inline1"]
    assert program.files.of("odd#inline.py") == ["odd#inline.py", "odd#inline.py#inline1"]
    assert program.files.of("c.py") == []


def test_what_waited_changes_nothing_that_was_asked_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Words] = []
    real = index.mentioning
    monkeypatch.setattr(index, "mentioning", lambda texts, words: (asked.append(words), real(texts, words))[1])
    program, rows = Program(), models.builtin("python")
    texts = {"a.py": "import b\n", "b.py": "lane = 1\n"}
    program.outlines = {"a.py": frozenset({"b"}), "b.py": frozenset()}
    program.texts.update(texts)
    program.wait("b.py", lambda: [program.add(lower("b.py", texts["b.py"]), rows)].clear())
    first = program.add(lower("a.py", texts["a.py"]), rows)
    for _ in range(2):  # the second time it is there
        assert [file.path for file in program.mentioning(first, "lane")] == ["b.py"]
    assert len(asked) == 1
    program.add(lower("c.py", "lane = 2\n"), rows)
    assert [file.path for file in program.mentioning(first, "lane")] == ["b.py", "c.py"]
