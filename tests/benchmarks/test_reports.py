"""Reports to the authors of packages: their patches are diffs that fit the release, and their programs are Python."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS, REPORTS = ROOT / "benchmarks", ROOT / "docs" / "reports"
NAMES = sorted(path.stem for path in REPORTS.glob("*.md")) if REPORTS.is_dir() else []
PARTS = ["Program", "Output", "Analysis", "Patch"]
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not in the source distribution")


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The scripts as modules, and the committed evidence."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    named = {name: importlib.import_module(name) for name in ("reproduce", "reproductions", "corpus", "precision")}
    reports = importlib.import_module("reproductions.reports")
    evidence = json.loads(named["reproduce"].EVIDENCE.read_text(encoding="utf-8"))
    return SimpleNamespace(**named, reports=reports, evidence=evidence)


@pytest.mark.parametrize("name", NAMES)
def test_a_report_has_all_its_parts(name: str) -> None:
    text = (REPORTS / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "**Package:**" in text
    assert "**Where:**" in text
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == PARTS
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ast.parse(program)


@pytest.mark.parametrize("name", NAMES)
def test_a_report_shows_the_evidence(scripts: Any, name: str) -> None:
    text = (REPORTS / f"{name}.md").read_text(encoding="utf-8")
    assert scripts.reproduce.with_output(text, scripts.evidence) == text
    ((module, _),) = re.findall(r"<!-- output: (\S+) (\S+) -->", text)
    assert module in scripts.reproductions.MODULES


@pytest.mark.parametrize("name", NAMES)
def test_a_patch_is_a_diff_that_changes_something(scripts: Any, name: str) -> None:
    found = list(scripts.reports.hunks(scripts.reports.patch_of(name)))
    assert found
    assert all(hunk.old != hunk.new for hunk in found)


@pytest.mark.parametrize("name", NAMES)
def test_a_patch_fits_the_release(scripts: Any, name: str) -> None:
    (package,) = re.findall(r"^\*\*Package:\*\* (\S+ \S+),", (REPORTS / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE)
    pin = {f"{pin.name} {pin.version}": pin for pin in scripts.precision.pins()}[package]
    tree = Path(os.environ.get("STREAMLINT_TREES", scripts.corpus.default_folder())) / pin.tree
    if not tree.is_dir():
        pytest.skip(f"{pin.tree} is not unpacked")
    for path in {hunk.path for hunk in scripts.reports.hunks(scripts.reports.patch_of(name))}:
        text = (tree / path).read_text(encoding="utf-8")
        assert scripts.reports.patched(path, text, name) != text


def test_the_field_notes_link_each_report() -> None:
    notes = (ROOT / "docs" / "field-notes.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\(reports/(\S+)\.md\)", notes)) == NAMES


HUNK = "--- a/f.py\n+++ b/f.py\n@@ -2,2 +2,3 @@\n b\n-c\n+d\n+e\n"


def with_report(scripts: Any, folder: Path, *patches: str) -> None:
    scripts.reports.REPORTS = folder
    fences = "\n".join(f"```diff\n{patch}```\n" for patch in patches)
    (folder / "one.md").write_text(f"# One\n\n{fences}", encoding="utf-8")


def test_a_patch_is_put_into_the_file_that_it_names(scripts: Any, tmp_path: Path) -> None:
    with_report(scripts, tmp_path, HUNK)
    assert scripts.reports.patched("f.py", "a\nb\nc\nf\n", "one") == "a\nb\nd\ne\nf\n"
    assert scripts.reports.patched("g.py", "a\nb\nc\nf\n", "one") == "a\nb\nc\nf\n"


def test_a_patch_is_refused_where_the_release_has_other_lines(scripts: Any, tmp_path: Path) -> None:
    with_report(scripts, tmp_path, HUNK)
    with pytest.raises(scripts.reports.PatchError, match="line 2"):
        scripts.reports.patched("f.py", "b\nc\nf\n", "one")


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (HUNK.replace("+e\n", ""), "ends early"),
        (HUNK.replace("-2,2", "-2,1"), "counts other lines"),
        (HUNK.replace("+++ b/f.py", "+++ b/g.py"), "two names"),
        ("other\n", "neither"),
    ],
)
def test_what_is_no_patch_is_refused(scripts: Any, tmp_path: Path, patch: str, said: str) -> None:
    with pytest.raises(scripts.reports.PatchError, match=said):
        list(scripts.reports.hunks(patch))


def test_a_report_has_one_patch(scripts: Any, tmp_path: Path) -> None:
    with_report(scripts, tmp_path, HUNK, HUNK)
    with pytest.raises(scripts.reports.PatchError, match="2 diffs"):
        scripts.reports.patch_of("one")


def test_a_report_says_where_it_was_not_run(scripts: Any) -> None:
    report = "<!-- output: none a/b -->\n\nold\n\n<!-- /output -->\n"
    assert "Not run on a GPU yet." in scripts.reproduce.with_output(report, {})
    ran = scripts.evidence["torch_cluster"]
    shown = scripts.reproduce.with_output(report.replace("none a/b", "torch_cluster csrc/cuda/fps"), scripts.evidence)
    assert "20 of 20 wrong" in shown
    assert ran["platform"]["gpu"] in shown
    assert "graclus" not in shown
