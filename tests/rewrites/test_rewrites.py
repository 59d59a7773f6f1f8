"""Rewrites that change nothing for CUDA change no finding: a function taken out, a module in two, arms exchanged, padding.

Renaming is tested with the documents themselves. ``differences.toml`` lists what does change, with its reason; it may be 2 % at most.
"""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from documents import DOCUMENTS, SUFFIXES, Section, options_of, read
from rename import File
from rewrites import branches, extraction, padding, splitting
from rewrites.cases import REWRITES, Case, Difference, applying, compare
from rewrites.labels import labelled, labels_of
from thorough import count

from streamlint.config.settings import parse_toml

DIFFERENCES = parse_toml((Path(__file__).parent / "differences.toml").read_bytes(), "differences.toml")
MOST = 0.02
STEP = count(few=4, many=1)  # from one section to the next
STEMS = [document.stem for document in DOCUMENTS]
# How many rewrites apply to a section of a document, on the average: one that ceases to apply shows.
FEWEST = 2


def sections(stem: str) -> list[Section]:
    document = next(path for path in DOCUMENTS if path.stem == stem)
    return [section for section in read(document) if any(file.language == "python" for file in section.files)]


def case_of(section: Section) -> Case:
    names = [file.name for file in section.files]
    rows = [(names.index(mark.file), mark.row) for mark in section.marked("orders")]
    return Case(list(section.files), options_of(section.document), rows)


def known(stem: str) -> dict[tuple[str, str], str]:
    return {(title, name): why for title, table in DIFFERENCES.get(stem, {}).items() for name, why in table.items()}


@pytest.mark.parametrize("stem", STEMS)
def test_findings_stay(stem: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    changed: dict[tuple[str, str], Difference] = {}
    listed, everything = known(stem), sections(stem)
    # Of the sections that are not listed each fourth one, or with more cases each.
    mine = [one for number, one in enumerate(everything) if number % STEP == 0 or any(title == one.title for title, _ in listed)]
    applied = 0
    for section in mine:
        folder = tmp_path_factory.mktemp("project")
        monkeypatch.chdir(folder)
        for file in section.files:
            if file.language not in SUFFIXES:
                (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
                (folder / file.name).write_text(file.text)
        for name, found in compare(case_of(section)):
            applied += found is not None
            if found:
                changed[section.title, name] = found
    assert changed.keys() == listed.keys(), f"mend it, or list it in differences.toml with its reason: {changed}"
    assert applied >= FEWEST * len(mine)


def test_few_differ() -> None:
    """At most 2 % of the rewrites that apply, which are counted on every tenth section, as if nothing were found there."""
    everything = [section for stem in STEMS for section in sections(stem)]
    sample = everything[::10]
    applied = sum(applying(case_of(section)) for section in sample)
    assert applied >= FEWEST * len(sample)
    listed = sum(len(table) for tables in DIFFERENCES.values() for table in tables.values())
    assert listed <= MOST * applied / len(sample) * len(everything)


def test_every_difference_names_a_section() -> None:
    titles = {(stem, section.title) for stem in STEMS for section in sections(stem)}
    assert {(stem, title) for stem, tables in DIFFERENCES.items() for title in tables} <= titles
    assert {name for tables in DIFFERENCES.values() for table in tables.values() for name in table} <= set(REWRITES)


# The rewrites themselves ------------------------------------------------------------------------------------------------------

PROGRAM = """import torch


def helper(x):
    return x + 1


class Net:
    def step(self, x):
        y = helper(x)
        if y.is_cuda:
            self.last = y.to("cpu")
        else:
            return None
        return self.last
"""


def rewritten(module: object, row: int) -> str:
    files = labelled([File("a.py", "python", PROGRAM)])
    done = module.rewrite(files, [(0, row)])  # type: ignore[attr-defined]
    assert done is not None
    for file in done:
        cst.parse_module(file.text)
    return "\n".join(f"{file.name}:\n{file.text}" for file in done)


def without_labels(text: str) -> str:
    return "\n".join(line.partition("  # @")[0] for line in text.split("\n"))


def test_labels_stay_on_their_lines() -> None:
    (file,) = labelled([File("a.py", "python", "x = '''a\nb'''  # a comment\ny = '#'\n")])
    assert [labels_of(line) for line in file.text.split("\n")] == [[], [(0, 2)], [(0, 3)], []]


def test_a_statement_becomes_a_method() -> None:
    text = rewritten(extraction, 12)
    assert '    def taken_out(self, y):\n        self.last = y.to("cpu")  # @0:12\n' in text
    assert "self.taken_out(y)  # @0:12" in text


def test_a_statement_becomes_a_function() -> None:
    text = without_labels(rewritten(extraction, 10))
    assert "def taken_out(x):\n    y = helper(x)\n    return y\n" in text
    assert "y = taken_out(x)" in text


def test_a_module_is_split() -> None:
    text = without_labels(rewritten(splitting, 10))
    first, second = text.split("moved_parts.py:\n")
    assert "from moved_parts import helper" in first
    assert "def helper" not in first
    assert second.startswith("import torch")
    assert "def helper(x):\n    return x + 1" in second


def test_arms_are_exchanged() -> None:
    text = rewritten(branches, 11)
    assert "if (not (y.is_cuda)):  # @0:11\n            return None  # @0:14\n        else:" in text


def test_padding_stands_between_statements() -> None:
    text = without_labels(rewritten(padding, 10))
    assert "unrelated_" in text
    assert "class Net:\n    def step" in text
