"""Messages, labels, helps and rule pages are in one style (``tests/wording.py``); ``tests/rules`` looks at those of its documents."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from snippets import real_findings
from wording import MOST_WORDS, avoided, faults, misworded

from streamlint.checks.base import registry
from streamlint.checks.rules import all_rules

PACKAGE = Path(__file__).parents[1] / "streamlint"
CHECK_FILES = sorted((PACKAGE / "checks").glob("sl*.py"))
IDS = [path.stem[:5].upper() for path in CHECK_FILES]
_CODE = re.compile(r"^```.*?^```|``.*?``", re.DOTALL | re.MULTILINE)


def pages() -> Iterator[tuple[str, str]]:
    """The text of each rule's page, without code and references."""
    for code, check in all_rules().items():
        for heading, text in check.documentation().items():
            if heading != "References":
                yield f"{code} {heading}", _CODE.sub("", text)


def phrases(check: Path) -> Iterator[str]:
    """The strings of a check's code that hold a sentence or a piece of one, whether or not a finding of the tests shows it."""
    tree = ast.parse(check.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip() and id(node) not in docstrings:
            yield node.value


def templates(check: Path) -> Iterator[str]:
    """The messages that are written where the finding is made; each placeholder is one word."""
    for node in ast.walk(ast.parse(check.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"finding", "finding_at"}:
            yield from written(node.args[1])


def written(message: ast.expr) -> Iterator[str]:
    if isinstance(message, ast.Constant) and isinstance(message.value, str):
        yield message.value
    elif isinstance(message, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "placeholder" for part in message.values)
    elif isinstance(message, ast.IfExp):
        yield from written(message.body)
        yield from written(message.orelse)


def labels() -> Iterator[str]:
    """The literal pieces of the labels that rules give to places."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Step" and path.parent.name != "checks":
                yield from (c.value for c in ast.walk(node.args[0]) if isinstance(c, ast.Constant) and isinstance(c.value, str))


def test_findings_are_in_the_style() -> None:
    assert {found.code for found in real_findings()} == set(registry()) == set(IDS)
    assert {text: wrong for found in real_findings() for text, wrong in misworded(found).items()} == {}


@pytest.mark.parametrize("check", CHECK_FILES, ids=IDS)
def test_messages_are_in_the_style_where_they_are_written(check: Path) -> None:
    assert {text: wrong for text in templates(check) if (wrong := faults(text))} == {}


@pytest.mark.parametrize("check", CHECK_FILES, ids=IDS)
def test_phrases_are_in_the_terms_of_the_field(check: Path) -> None:
    assert [text for text in phrases(check) if avoided(text)] == []


def test_labels_are_in_the_terms_of_the_field() -> None:
    texts = list(labels())
    assert "stream created here" in texts
    assert [text for text in texts if avoided(text)] == []


def test_pages_are_in_the_terms_of_the_field() -> None:
    assert [(place, word) for place, text in pages() if (word := avoided(text))] == []


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("kernel on the default stream; it serializes with all blocking streams", ""),
        ("Kernel on the default stream", "begins in lower case, ends without a full stop"),
        ("kernel on the default stream.", "begins in lower case, ends without a full stop"),
        ("kernel on the default stream: it waits", "one consequence, after a semicolon"),
        ("kernel on the default stream; it waits; the host waits", "one consequence, after a semicolon"),
        ("kernel on the default stream; use another one", "the remedy stands in the help"),
        ("call cudaStreamSynchronize before the read", "the remedy stands in the help"),
        ("kernel in each round of a loop", "avoid 'round'"),
        ("kernel " * (MOST_WORDS + 1), "16 words"),
    ],
)
def test_faults_are_seen(message: str, fault: str) -> None:
    assert faults(message) == ([fault] if fault else [])
