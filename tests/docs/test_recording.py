"""The picture in the README is what the linter prints now, and what a GPU was recorded to have said."""

from __future__ import annotations

import re

import pytest

from streamlint_docs import DOCS, ROOT, authored, recording
from streamlint_docs.programs import lint

STORIES = (DOCS / "recording" / "stories.txt").read_text(encoding="utf-8").splitlines()
ROW = re.compile(r"(?P<place>[\w.]+:\d+:\d+): (?P<name>\S+ \[SL\d{3}\]) (?P<message>.*) \[verify: (?P<verdict>[A-Z ]+) on ")


@pytest.fixture(scope="module")
def shown() -> list[str]:
    return list(recording.lines())


def test_the_picture_is_current(shown):
    current = recording.PICTURE.read_text(encoding="utf-8")
    assert current == recording.picture(shown), "write it anew: python -m streamlint_docs.recording"


def test_it_predicts_confirms_and_mends(shown):
    plain = [recording.SGR.sub("", line) for line in shown]
    assert [line for line in plain if line.startswith("$")] == [
        "$ streamlint check best.py",
        "$ streamlint verify best.py",
        "$ streamlint check --diff best.py",
        "$ streamlint check --fix best.py",
    ]
    assert plain[1].startswith("error: d2h-read-before-sync [SL005]")
    assert plain[-1] == "1 file, 1 mentions CUDA, 0 findings (1 fixed)"
    assert max(map(len, plain)) <= recording.COLUMNS


def test_what_the_gpu_said_is_taken_from_the_record_with_its_place(shown):
    record = recording.RECORDED.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"# NVIDIA \S+, driver [\d.]+, .*, \d{4}-\d{2}-\d{2}", record[0])
    start = shown.index("$ streamlint verify best.py")
    told = shown[start + 2 : shown.index("", start)]
    assert record[0][2:] in shown[start - 1]
    assert "CONFIRMED" in told[0]
    assert all(line in record for line in told)


def test_the_picture_is_in_the_readme():
    assert "](docs/images/recording.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_runs_of_text_keep_their_columns():
    row = recording._row("\x1b[1;31merror\x1b[0m: <a>  b", 10)
    assert '<tspan x="18.0" textLength="42.1" class="b c31">error</tspan>' in row
    assert f'<tspan x="{18 + 5 * recording.CELL:.1f}"' in row
    assert "&lt;a&gt;</tspan>" in row
    assert f'<tspan x="{18 + 12 * recording.CELL:.1f}" textLength="{recording.CELL:.1f}">b</tspan>' in row


def test_the_stories_of_the_first_page_were_confirmed():
    """The record of `streamlint verify` has each finding that the page shows, where it is found now."""
    confirmed = {(found["place"], found["name"]) for line in STORIES if (found := ROW.match(line)) and found["verdict"] == "CONFIRMED"}
    told = {
        (f"{finding.span.file}:{finding.span.row}:{finding.span.column}", f"{finding.name} [{finding.code}]")
        for source, codes in authored.asked((DOCS / "index.md").read_text(encoding="utf-8"))
        for finding in lint(source, codes).findings
    }
    assert told == confirmed
    assert STORIES[-1] == f"{len(told)} findings: {len(told)} CONFIRMED"
