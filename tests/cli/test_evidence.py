"""``streamlint evidence``: list, show, export, import; and files that are not what they should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamlint.cli import main
from streamlint.findings import measured
from streamlint.verify import evidence

FACTS = {"gpu": "Fake GPU", "driver": "1.2.3", "cuda_runtime": "13.0", "packages": {"cupy-cuda13x": "14.2", "torch": "2.11"}}
CASE = {"rule": "SL003", "case": "cuda_free_in_loop", "api": "cupy", "prediction": "waits", "verdict": "REFUTED", "reason": "slope 0.00"}


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, and nothing shipped."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(evidence, "SHIPPED", tmp_path / "shipped")
    monkeypatch.chdir(tmp_path)
    measured.records.cache_clear()
    evidence._complain.cache_clear()
    return evidence.user_folder()


def test_nothing_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", "list"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "streamlint verify" in captured.err


def test_list_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    evidence.save([CASE, {**CASE, "rule": "SL001", "verdict": "CONFIRMED"}], FACTS, date="2026-11-20")
    assert main(["evidence", "list"]) == 0
    assert capsys.readouterr().out == (
        "Fake GPU · driver 1.2 · CUDA 13.0: 2 cases of 2 rules, 1 CONFIRMED, 1 REFUTED; last on 2026-11-20\n"
    )
    assert main(["evidence", "show", "alloc-in-loop"]) == 0
    assert capsys.readouterr().out == (
        "SL003 cuda_free_in_loop [cupy] REFUTED: slope 0.00 (Fake GPU · driver 1.2 · CUDA 13.0, cupy-cuda13x 14.2, 2026-11-20)\n"
    )
    assert main(["evidence", "show", "--output-format", "json", "--platform", "other"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_show_as_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2")
    evidence.save([CASE], FACTS)
    assert main(["evidence", "show", "--output-format", "html"]) == 0
    assert "Fake GPU · driver 1.2 · CUDA 13.0" in capsys.readouterr().out


def test_from_one_machine_to_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence.save([CASE], FACTS, date="2026-11-20")
    assert main(["evidence", "export", "mine.json"]) == 0
    there = tmp_path / "there"
    evidence.save([{**CASE, "verdict": "CONFIRMED"}, {**CASE, "case": "other"}], FACTS, there, "2026-11-19")
    assert main(["evidence", "import", "mine.json", "--evidence", str(there)]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "Fake GPU · driver 1.2 · CUDA 13.0: 1 verdicts"
    found = {entry["case"]: (entry["verdict"], entry["date"]) for entry in evidence.read(there)}
    assert found == {"cuda_free_in_loop": ("REFUTED", "2026-11-20"), "other": ("REFUTED", "2026-11-19")}
    (path,) = there.glob("*.json")
    assert json.loads(path.read_text(encoding="utf-8"))["platform"] == FACTS  # the packages of the machine that it came from stay


def test_what_is_imported_does_not_undo_what_is_newer(tmp_path: Path) -> None:
    evidence.save([CASE], FACTS, date="2026-11-19")
    main(["evidence", "export", "mine.json"])
    evidence.save([{**CASE, "verdict": "CONFIRMED"}], FACTS, date="2026-11-20")
    main(["evidence", "import", "mine.json"])
    assert [entry["verdict"] for entry in evidence.read(evidence.user_folder())] == ["CONFIRMED"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[]", "no evidence of streamlint"),
        ('{"schema": 99, "entries": []}', "another streamlint, as version 99"),
        ('{"schema": 1, "entries": [{"rule": "SL001"}]}', "its entries are not evidence"),
    ],
)
def test_what_is_not_evidence_is_one_clear_message(own: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.json").write_text(text, encoding="utf-8")
    assert main(["evidence", "import", "bad.json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("streamlint: bad.json is not to be imported: ")
    assert words in line
    assert not own.exists()


def test_a_corrupt_file_among_the_users_own(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = evidence.save([CASE], FACTS)
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    for _ in range(2):  # told once
        measured.records.cache_clear()
        assert main(["rule", "SL003"]) == 0
    captured = capsys.readouterr()
    assert "REFUTED" not in captured.out
    (line,) = captured.err.splitlines()
    assert str(path) in line
    assert "cannot be read and is left out (no JSON" in line


def test_a_corrupt_file_is_kept_beside_the_new_one(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = evidence.save([CASE], FACTS)
    path.write_text("torn", encoding="utf-8")
    assert evidence.save([CASE], FACTS) == path
    assert path.with_suffix(".json.bad").read_text(encoding="utf-8") == "torn"
    assert len(evidence.read(own)) == 1
    assert capsys.readouterr().err.count("json.bad") == 1


@pytest.mark.parametrize("words", [["list", "SL001"], ["show", "SL999"], ["export"], ["import"], ["import", "nowhere.json"], ["burn"]])
def test_mistakes_are_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_rules_page_and_check_show_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evidence.save([CASE], FACTS, date="2026-11-20")
    assert main(["rule", "SL003"]) == 0
    shown = capsys.readouterr().out
    assert "**REFUTED** cuda_free_in_loop · cupy: slope 0.00" in shown
    assert "  Fake GPU · driver 1.2 · CUDA 13.0 · cupy-cuda13x 14.2 · 2026-11-20" in shown
    loop = "    for _ in range(n):\n        memory = cupy.cuda.runtime.malloc(64)\n        cupy.cuda.runtime.free(memory)\n"
    Path("a.py").write_text(f"import cupy\n\n\ndef f(n):\n{loop}", encoding="utf-8")
    main(["check", "a.py", "--isolated"])
    assert capsys.readouterr().out.count("= verify: rule refuted on Fake GPU · driver 1.2 · CUDA 13.0") == 1
