"""How messages, labels, helps and rule pages are worded: the problem first, in few words; its consequence after a semicolon."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from snippets import possible_findings, real_findings

from streamlint.checks.base import registry
from streamlint.findings import Finding

PACKAGE = Path(__file__).parents[1] / "streamlint"
CHECKS = registry()
CHECK_FILES = {path.stem[:5].upper(): path for path in sorted((PACKAGE / "checks").glob("sl*.py"))}
MOST_WORDS = 15
# Words that make a reader guess, with the field's terms for them.
AVOIDED = {
    r"at hand": "in scope, known",
    r"out of view": "unknown, external",
    r"in view": "known, analyzed",
    r"rounds?": "iteration",
    r"tells?|told": "report, show",
    r"for ever": "deadlock",
    r"st(?:and|ood)s? still": "block, stall",
    r"handed|given out|g[io]ve[sn]? back|goes back": "pass, return, reuse",
    r"under the feet": "overwrite",
    r"behind": "after",
    r"beside": "concurrently, next to",
    r"meanwhile": "until",
    r"what|who|whoever|that which": "(the noun)",
    r"kin|twins?": "(the noun)",
    r"mends?|mended": "fix",
}
_AVOIDED = re.compile(rf"\b(?:{'|'.join(AVOIDED)})\b", re.IGNORECASE)
_REMEDY = re.compile(r"\b(?:use|instead|should|must|please)\b|\bcall \S+ before\b|^(?:pass|allocate|synchronize|copy \w+ before)\b")
_CODE = re.compile(r"^```.*?^```|``.*?``", re.DOTALL | re.MULTILINE)


def findings() -> Iterator[Finding]:
    yield from real_findings()
    yield from possible_findings()


def messages() -> list[str]:
    return sorted({found.message for found in findings()})


def pages() -> Iterator[tuple[str, str]]:
    """The text of each rule's page, without code and references."""
    for code, check in CHECKS.items():
        for heading, text in check.documentation().items():
            if heading != "References":
                yield f"{code} {heading}", _CODE.sub("", text)


def phrases(check: Path) -> Iterator[str]:
    """The strings of a check's code that hold a sentence or a piece of one, whether or not a finding of the tests shows it."""
    tree = ast.parse(check.read_text(encoding="utf-8"))
    pages = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip() and id(node) not in pages:
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
        yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in message.values if part is not None)
    elif isinstance(message, ast.IfExp):
        yield from written(message.body)
        yield from written(message.orelse)


def labels() -> Iterator[str]:
    """The literal pieces of the labels that the interpreter gives to places."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Step" and path.parent.name != "checks":
                yield from (c.value for c in ast.walk(node.args[0]) if isinstance(c, ast.Constant) and isinstance(c.value, str))


def test_messages_are_short() -> None:
    assert [message for message in messages() if len(message.split()) > MOST_WORDS] == []


@pytest.mark.parametrize("code", CHECKS)
def test_messages_are_short_where_they_are_written(code: str) -> None:
    assert [text for text in templates(CHECK_FILES[code]) if len(text.split()) > MOST_WORDS] == []


def test_the_consequence_stands_after_a_semicolon() -> None:
    assert [message for message in messages() if ": " in message or message.count(";") > 1] == []


def test_messages_begin_in_lower_case_and_end_without_a_full_stop() -> None:
    """A first word in capitals is a name: of a library (`CuPy`, `PyTorch`) or of a class (`DataLoader`)."""
    wrong = [message for message in messages() if message.endswith(".") or not re.match(r"[a-z_]|[A-Z][a-z]*[A-Z]", message)]
    assert wrong == []


def test_the_remedy_is_in_the_help_alone() -> None:
    assert [message for message in messages() if _REMEDY.search(message)] == []
    assert all(found.help for found in findings())


def test_findings_are_worded_in_the_terms_of_the_field() -> None:
    said = {text for found in findings() for text in (found.message, found.help, *(step.message for step in found.trail))}
    assert sorted(text for text in said if _AVOIDED.search(text)) == []


@pytest.mark.parametrize("code", CHECKS)
def test_phrases_are_worded_in_the_terms_of_the_field(code: str) -> None:
    """Those of findings that no test shows, too."""
    assert [text for text in phrases(CHECK_FILES[code]) if _AVOIDED.search(text)] == []


def test_labels_are_worded_in_the_terms_of_the_field() -> None:
    texts = list(labels())
    assert "stream created here" in texts
    assert [text for text in texts if _AVOIDED.search(text)] == []


def test_pages_are_worded_in_the_terms_of_the_field() -> None:
    assert [(place, found[0]) for place, text in pages() if (found := _AVOIDED.search(text))] == []


def test_each_rule_is_checked() -> None:
    assert {found.code for found in findings()} == set(CHECKS) == set(CHECK_FILES)
