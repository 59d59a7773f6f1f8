"""Questions stand beside the answers that they were asked for, and go with them."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable

import pytest
from documents import DOCUMENTS, read

from streamlint import interpreter
from streamlint.checks.base import registry
from streamlint.engine import analyse
from streamlint.interpreter.consulted import Consulted
from streamlint.interpreter.notes import Kept, aside, begin, kept, kept_in_rounds, note, noted, remembered
from streamlint.options import Options, Source
from streamlint.reading import language_of


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


def test_no_cache_of_pythons_own_stands_between_a_question_and_who_rests_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `functools` keeps would be handed on without its questions: such a function has to be `remembered`."""
    modules = [importlib.import_module(name) for _, name, _ in pkgutil.walk_packages(interpreter.__path__, f"{interpreter.__name__}.")]
    held = [value for module in modules for value in vars(module).values() if isinstance(value, functools._lru_cache_wrapper)]
    codes = {value.__wrapped__.__code__: value.__wrapped__.__qualname__ for value in held}
    assert len(codes) > 20
    caught: set[str] = set()
    asked = 0

    def watched(plain: Callable[..., object]) -> Callable[..., object]:
        def ask(*args: object) -> object:
            nonlocal asked
            asked += 1
            frame = inspect.currentframe()
            while frame is not None and frame.f_code.co_name != "_check":
                caught.update({codes[frame.f_code]} if frame.f_code in codes else ())
                frame = frame.f_back
            return plain(*args)

        return ask

    for name in ("module", "call", "lead", "native", "mention", "text", "tie"):
        monkeypatch.setattr(Consulted, name, watched(getattr(Consulted, name)))
    several = [section for document in DOCUMENTS for section in read(document) if len(section.files) > 1]
    for section in several:
        analyse(
            [Source(file.name, file.text, language_of(file.name) or "python") for file in section.files],
            Options(codes=frozenset(registry())),
        )
    assert asked > 500
    assert not caught
