"""Hot regions: `hot.md` beside this file, and steps that stand many calls away from their loop."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import DOCUMENTS, Section, read
from facts.programs import facts_of

from streamlint import cli
from streamlint.commands.debug_hot import explain
from streamlint.facts.graph.facts import Facts
from streamlint.models import builtin

_SECTION = re.compile(r"^## (.+?)\n\n```python\n(.*?)```", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"  # (hot|rare|cold)(?:: (.*))?$")
SECTIONS = _SECTION.findall((Path(__file__).parent / "hot.md").read_text(encoding="utf-8"))


def said(facts: Facts, file: str, row: int) -> str:
    return "\n".join(explain(facts, facts.program.units[f"{file}.py"], str(row)))


def marks(text: str) -> Iterator[tuple[int, str, str]]:
    for row, line in enumerate(text.splitlines(), 1):
        if (found := _MARK.search(line)) is not None:
            yield row, found[1], found[2] or ""


@pytest.mark.parametrize(("title", "text"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_documents(title: str, text: str) -> None:
    facts = facts_of(a=text)
    wrong = []
    for row, word, reason in marks(text):
        answer = said(facts, "a", row)
        is_hot, is_rare = ": hot" in answer, ": rare" in answer
        right = {"hot": is_hot, "rare": is_rare, "cold": not is_hot}[word]
        if not right or reason not in answer:
            wrong.append((row, word, reason, answer))
    assert not wrong


RULES = [section for document in DOCUMENTS if document.stem in ("sl020", "sl021") for section in read(document)]


@pytest.mark.parametrize("section", [one for one in RULES if one.marked("error", "MISSING")], ids=lambda section: section.id)
def test_where_the_rules_report_is_hot(section: Section) -> None:
    facts = facts_of(**{file.name.removesuffix(".py"): file.text for file in section.files if file.language == "python"})
    found = [mark for mark in section.marked("error", "MISSING") if mark.code in ("SL020", "SL021") and mark.file.endswith(".py")]
    assert [mark.row for mark in found if ": hot" not in said(facts, mark.file.removesuffix(".py"), mark.row)] == []


HOW = {
    "function": ("def s{n}(net, batch): {next}", "s{n}(net, batch)"),
    "keyword": ("def s{n}(batch, net): {next}", "s{n}(net=net, batch=batch)"),
    "partial": ("def t{n}(net, batch): {next}\ns{n} = functools.partial(t{n})", "s{n}(net, batch)"),
    "lambda": ("s{n} = lambda net, batch: {next}", "s{n}(net, batch)"),
    "table": ("def t{n}(net, batch): {next}\nT{n} = {{'a': t{n}}}", "T{n}['a'](net, batch)"),
    "override": (
        "class B{n}:\n    def go(self, net, batch): return self.one(net, batch)\n    def one(self, net, batch): pass\n"
        "class C{n}(B{n}):\n    def one(self, net, batch): {next}",
        "C{n}().go(net, batch)",
    ),
    "attribute": (
        "def t{n}(net, batch): {next}\nclass A{n}:\n    def __init__(self): self.f = t{n}\n    def go(self, *a): return self.f(*a)",
        "A{n}().go(net, batch)",
    ),
    "decorated": (
        "def w{n}(f):\n    def inner(*a, **k): return f(*a, **k)\n    return inner\n@w{n}\ndef s{n}(net, batch): {next}",
        "s{n}(net, batch)",
    ),
}
PAIRS = [*((how,) * depth for how in HOW for depth in (1, 3, 6)), *itertools.permutations(HOW, 2)]


def program(ways: tuple[str, ...], is_split: bool) -> dict[str, str]:
    """A loop, and helpers behind one another; the last one trains."""
    names = [f"m{number}" if is_split else "m" for number in range(len(ways) + 1)]
    files = dict.fromkeys(names, "import functools\nimport torch\n")
    call = "last(net, batch)"
    files[names[-1]] += "def last(net, batch):\n    net(batch).sum().backward()\n    batch.sum().item()\n"
    for number in range(len(ways) - 1, -1, -1):
        definition, next_call = (part.format(n=number, next=call) for part in HOW[ways[number]])
        if is_split:
            files[names[number]] += f"from {names[number + 1]} import *\n"
        files[names[number]] += definition + "\n"
        call = next_call
    main = f"from {names[0]} import *\ndef fit(net, loader):\n    for batch in loader:\n        {call}\n"
    return {**files, "main": main}


@pytest.mark.parametrize("is_split", [False, True], ids=["one file", "files"])
@pytest.mark.parametrize("ways", PAIRS, ids=" ".join)
def test_a_step_stands_behind_helpers(ways: tuple[str, ...], is_split: bool) -> None:
    files = program(ways, is_split)
    facts = facts_of(**files)
    last = next(name for name, text in files.items() if "def last" in text)
    row = next(number for number, line in enumerate(files[last].splitlines(), 1) if "item" in line)
    answer = said(facts, last, row)
    assert "last: hot\n  main.py:3: each round of this loop runs a backward pass (main.py:4)\n  main.py:4: calls" in answer
    assert answer.count("calls") >= len(ways) + 1


def test_rows_of_frameworks_say_where_they_are_from() -> None:
    models = builtin("python")
    assert [row.names for row in models.steps if not row.source and not row.forward] == []
    assert [row.names for row in models.rounds if not row.source] == []


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b.py").write_text("import torch\ndef wait(): torch.cuda.synchronize()\n")
    Path("a.py").write_text("from b import wait\ndef fit(net, loader):\n    for x in loader:\n        net(x).backward()\n        wait()\n")
    assert cli.main(["debug", "hot", "b.py:2", "--root", "."]) == 0
    reason = "a.py:3: each round of this loop runs a backward pass (a.py:4)"
    assert capsys.readouterr().out == f"wait: hot\n  {reason}\n  a.py:5: calls wait\n"
    assert cli.main(["debug", "hot", "b.py:1", "--root", "."]) == 0
    assert capsys.readouterr().out.startswith("not hot")
    assert cli.main(["debug", "hot", "b.py:wait", "--root", "."]) == 2
