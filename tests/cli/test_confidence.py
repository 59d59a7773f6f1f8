"""``--confidence`` and ``--sort``: what is left out, what is said of it, and what stays as it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from streamlint import cli
from streamlint.findings import Category, Finding, Span, confidence
from streamlint.findings.grounds import Grounds

SHARE = confidence.share
LOOP = """\
import torch

model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)


def {name}(loader, log):
    for batch in loader:
        loss = model(batch.cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append(loss.item()){comment}
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        Path(f"{name}.py").write_text(LOOP.format(name=name, comment=""))


@pytest.fixture(autouse=True)
def shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in one file is sure, what is in the other one is not."""
    monkeypatch.setattr(confidence, "share", lambda finding: 0.9 if finding.span.file.endswith("two.py") else 0.2)


def check(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["check", "--no-cache", *words])
    out, err = capsys.readouterr()
    return code, out, err


def files(out: str) -> list[str]:
    return [line.partition(":")[0] for line in out.splitlines()]


def test_nothing_is_left_out_by_default(capsys) -> None:
    code, out, err = check(capsys, "--output-format", "concise")
    assert (code, files(out)) == (1, ["one.py", "two.py"])
    assert err.endswith("2 findings\n")


@pytest.mark.parametrize(("level", "left"), [("low", ["one.py", "two.py"]), ("medium", ["two.py"]), ("high", ["two.py"])])
def test_the_least_level(capsys, level: str, left: list[str]) -> None:
    code, out, err = check(capsys, "--output-format", "concise", "--confidence", level)
    assert (code, files(out)) == (1, left)
    assert ("(1 less sure)" in err) == (len(left) == 1)


def test_the_configuration_says_it_and_the_command_line_wins(capsys) -> None:
    Path("streamlint.toml").write_text('confidence = "high"\n')
    assert files(check(capsys, "--output-format", "concise")[1]) == ["two.py"]
    assert files(check(capsys, "--output-format", "concise", "--confidence", "low")[1]) == ["one.py", "two.py"]
    Path("streamlint.toml").write_text('confidence = "sure"\n')
    code, _, err = check(capsys)
    assert code == 2
    assert "'sure' is none of low, medium, high" in err


def test_an_unknown_level(capsys) -> None:
    assert check(capsys, "--confidence", "sure")[0] == 2


def test_clean_where_all_are_less_sure(capsys) -> None:
    os.remove("two.py")
    code, out, err = check(capsys, "--confidence", "medium")
    assert (code, out) == (0, "")
    assert "0 findings (1 less sure)" in err


def test_the_surest_first(capsys) -> None:
    for format in ("concise", "json-lines", "full"):
        _, out, _ = check(capsys, "--output-format", format, "--sort", "confidence")
        assert out.index("two.py") < out.index("one.py"), format
    assert "confidence: high: of 100 such findings about 90 are real" in " ".join(out.split())
    _, out, _ = check(capsys, "--output-format", "full")
    assert "confidence" not in out


def test_json_says_how_sure_and_why(capsys) -> None:
    _, out, _ = check(capsys, "--output-format", "json")
    first, second = json.loads(out)
    assert (first["confidence"], first["rank"], second["confidence"], second["rank"]) == ("low", 20, "high", 90)
    assert first["grounds"]["calls"] == 0
    assert first["grounds"].keys() == second["grounds"].keys()


def test_sarif_has_a_rank(capsys) -> None:
    _, out, _ = check(capsys, "--output-format", "sarif")
    assert [result["rank"] for result in json.loads(out)["runs"][0]["results"]] == [20, 90]


def test_a_comment_on_what_is_less_sure_still_hides_something(capsys) -> None:
    Path("one.py").write_text(LOOP.format(name="one", comment="  # streamlint: ignore[SL020] so it is"))
    _, out, _ = check(capsys, "--output-format", "concise", "--extend-select", "SL900", "--confidence", "high")
    assert files(out) == ["two.py"]


def test_a_baseline_is_not_stale_for_what_is_less_sure(capsys) -> None:
    check(capsys, "--write-baseline", "known.json")
    code, _, err = check(capsys, "--baseline", "known.json", "--confidence", "high")
    assert code == 0
    assert "stale" not in err


def test_the_grounds_are_kept(capsys) -> None:
    texts = []
    for _ in range(2):
        cli.main(["check", "--output-format", "json", "--cache-dir", "kept"])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert json.loads(texts[0])[0]["grounds"] is not None


def test_what_was_not_read_is_sure() -> None:
    place = Span("a.py", 1, 1, 1, 1)
    assert SHARE(Finding("SL000", "unreadable", Category.PORTABILITY, "", place)) == 1.0
    assert SHARE(Finding("SL020", "hidden-sync-in-hot-loop", Category.STALL, "", place)) < 1.0


def test_a_term_without_points_counts_for_nothing() -> None:
    found = confidence.terms("SL999", {}, Grounds())
    assert found["SL999"] == 1.0
    assert set(confidence.terms("SL999", {}, None)) == {"any", "SL999"}
