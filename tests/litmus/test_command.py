"""The command with a made-up GPU: exit codes, formats, replays, the self-test."""

from __future__ import annotations

import argparse
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from fake_gpu import Machine, saw

from streamlint import cli
from streamlint.cuda_model import FACTS
from streamlint.litmus import command
from streamlint.litmus.command import read_programs, run
from streamlint.litmus.program import PEER_STREAMS, LitmusError, needs_peers, parse
from streamlint.support.errors import StreamlintError

FREE = "T0 launch @n1 <gate\nT0 free"
TWO = f"# expected h0\n{FREE}\n\n\n# a comment of its own\n\nT0 launch @n2 <gate\nT1 launch @n1\n"


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(["--seconds", "0.1", *words])


def document(capsys: pytest.CaptureFixture[str], machine: Machine, *words: str) -> tuple[int, dict[str, Any]]:
    code = run(options("--output-format", "json", *words), machine)
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def programs(tmp_path: Path) -> str:
    path = tmp_path / "programs.txt"
    path.write_text(TWO, encoding="utf-8")
    return str(path)


# Exit codes -------------------------------------------------------------------------------------------------------------------


def test_agreement_is_0() -> None:
    machine = Machine()
    assert run(options(), machine) == 0
    assert [child.killed for child in machine.children] == [True]


def test_disagreement_is_1() -> None:
    assert run(options(), Machine("free-waits")) == 1


def test_a_run_that_hangs_is_1() -> None:
    hangs = Machine(odd=lambda gpu, _program: saw(problem="stuck", hung=True) if len(gpu.asked) == 3 else ...)
    assert run(options(), hangs) == 1
    assert len(hangs.children) > 1


def test_no_outcome_at_all_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(options(), Machine(odd=lambda _gpu, _program: saw(problem="no gate: it did not start"))) == 2
    captured = capsys.readouterr()
    assert "without an outcome:\n  " in captured.out
    assert captured.err.endswith("streamlint: no run had an outcome\n")


@pytest.mark.parametrize("words", [(), ("--self-test",)])
def test_a_child_that_cannot_start_is_2(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    machine = Machine(begin=({"event": "broken", "reason": "no CUDA device"},))
    assert run(options(*words), machine) == 2
    assert capsys.readouterr() == ("", "streamlint: litmus needs an NVIDIA GPU that CuPy can use (no CUDA device)\n")
    assert [child.killed for child in machine.children] == [True]


@pytest.mark.parametrize("words", [(), ("--self-test",), ("--pairs",)])
def test_no_cupy_is_2_with_the_command_that_installs_it(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert run(options(*words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "pip install 'streamlint[cuda13]'" in captured.err


# Reports ----------------------------------------------------------------------------------------------------------------------


def test_the_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    code, report = document(capsys, Machine("free-waits"), "--seed", "7")
    assert code == 1
    assert list(report) == [
        *("schema", "platform", "date", "peers", "seed", "seconds", "programs", "runs", "agreed", "agreement", "disagreed", "violations"),
        *("not_repeatable", "void", "hung", "void_reasons", "facts", "disagreements", "not_repeatable_programs"),
    ]
    assert (report["schema"], report["seed"], report["peers"]) == (1, 7, False)
    assert report["platform"]["gpu"] == "Fake"
    assert report["runs"] == report["agreed"] + report["disagreed"]
    assert report["facts"] == {
        fact.name: fact.name not in ("free-waits", "free-holds-all") for fact in FACTS.values() if not needs_peers(parse(fact.shown_by))
    }
    entries = report["disagreements"]
    assert {tuple(entry) for entry in entries} == {("program", "expected", "seen", "violation", "times")}
    assert [entry["times"] for entry in entries] == sorted((entry["times"] for entry in entries), reverse=True)
    (shortest,) = [entry for entry in entries if entry["program"] == FREE]
    assert (shortest["expected"], shortest["seen"], shortest["violation"]) == ("h0", "h0 h1", False)


def test_two_devices_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    _, report = document(capsys, Machine(peers=True))
    assert report["peers"] is True
    assert set(report["facts"]) == set(FACTS)


def test_two_devices_alone() -> None:
    machine = Machine(peers=True)
    assert run(options("--only-peers", "--seconds", "0.2"), machine) == 0
    drawn = machine.children[0].asked[len(FACTS) :]
    assert drawn
    assert {call.stream for program in drawn for call in program.calls} <= {*PEER_STREAMS, ""}


def test_two_devices_alone_where_there_is_one_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(options("--only-peers"), Machine()) == 2
    assert "there is no second one that it reaches" in capsys.readouterr().err


def test_two_devices_alone_and_left_alone() -> None:
    with pytest.raises(StreamlintError, match="--only-peers and --no-peers exclude each other"):
        run(options("--only-peers", "--no-peers"), Machine())


def test_the_same_seed_runs_the_same_programs() -> None:
    ones, others, different = Machine(), Machine(), Machine()
    for machine, seed in ((ones, "3"), (others, "3"), (different, "4")):
        run(options("--seed", seed), machine)
    shown = sum(not needs_peers(parse(fact.shown_by)) for fact in FACTS.values())
    both = min(len(ones.asked), len(others.asked))
    assert both > shown
    assert ones.asked[:both] == others.asked[:both]
    assert ones.asked[:shown] == different.asked[:shown], "the facts come first"
    assert ones.asked[shown] != different.asked[shown]


def test_every_run_can_be_written_down(tmp_path: Path, programs: str) -> None:
    book = tmp_path / "runs.jsonl"
    odd = Machine("free-waits", odd=lambda gpu, program: saw(problem="no gate") if program.calls[0].stream == "n2" else ...)
    run(options("--replay", programs, "--record", str(book)), odd)
    assert [json.loads(line) for line in book.read_text(encoding="utf-8").splitlines()] == [[FREE, "h0 h1"]]


def test_the_report_for_people_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.txt"
    assert run(options("-o", str(target)), Machine("free-waits")) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "% as expected" in captured.err
    text = target.read_text(encoding="utf-8")
    assert "not as expected" in text
    assert f"    {FREE.splitlines()[0]}\n    {FREE.splitlines()[1]}\n  expected  h0\n  seen      h0 h1\n" in text


# Replays ----------------------------------------------------------------------------------------------------------------------


def test_a_text_is_replayed(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine()
    code, report = document(capsys, machine, "--replay", programs)
    assert (code, report["runs"], report["agreed"], report["seed"], report["facts"]) == (0, 2, 2, None, {})
    assert [str(program) for program in machine.asked] == [FREE, "T0 launch @n2 <gate\nT1 launch @n1"]


@pytest.mark.parametrize("form", ["json", "text"])
def test_what_was_found_can_be_replayed(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report, or what ``--save`` wrote: they disagree again, and with the GPU as it should be they agree."""
    found, text = tmp_path / "found.json", tmp_path / "found.txt"
    run(options("--output-format", "json", "-o", str(found), "--save", str(text)), Machine("free-waits"))
    entries = json.loads(found.read_text(encoding="utf-8"))["disagreements"]
    path = str(found if form == "json" else text)
    code, again = document(capsys, Machine("free-waits"), "--replay", path)
    assert code == 1
    assert {entry["program"] for entry in again["disagreements"]} == {entry["program"] for entry in entries}
    assert again["runs"] == again["disagreed"] == len(entries) > 1
    code, mended = document(capsys, Machine(), "--replay", path)
    assert (code, mended["runs"], mended["agreed"]) == (0, len(entries), len(entries))


def test_what_is_saved_says_what_was_expected_and_seen(tmp_path: Path, programs: str) -> None:
    text = tmp_path / "found.txt"
    run(options("--replay", programs, "--save", str(text)), Machine("free-waits"))
    assert text.read_text(encoding="utf-8") == f"# expected h0\n# seen     h0 h1\n{FREE}\n"


def test_pairs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("streamlint.litmus.generate.pairs", lambda: iter([parse(FREE)] * 4))
    code, report = document(capsys, Machine(), "--pairs")
    assert (code, report["runs"], report["seed"]) == (0, 4, None)


def test_an_error_in_a_program_names_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "programs.txt"
    path.write_text(f"{FREE}\n\nT0 launch @n1 <gate\nT0 lunch @n1\n", encoding="utf-8")
    with pytest.raises(LitmusError, match="line 5: unknown call 'lunch'"):
        read_programs(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("T0 lunch @n1 <gate\n", "line 1: unknown call 'lunch'; did you mean 'launch'?"),
        ('{"disagreements": 3}', "is no report of 'streamlint litmus --output-format json'"),
        ("{no json", "is no report of 'streamlint litmus --output-format json'"),
    ],
)
def test_a_file_that_cannot_be_replayed_is_2(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "programs.txt"
    path.write_text(text, encoding="utf-8")
    assert cli.main(["litmus", "--replay", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_not_there_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", "--replay", str(tmp_path / "missing.txt")]) == 2
    assert f"streamlint: cannot read {tmp_path / 'missing.txt'}" in capsys.readouterr().err


# The self-test ----------------------------------------------------------------------------------------------------------------


def test_turned_facts_are_caught(capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine()
    words = ("--self-test", "--seconds", "60", "--turn", "free-waits", "--turn", "blocking-waits-for-null")
    code, report = document(capsys, machine, *words)
    assert code == 0
    assert list(report) == ["schema", "platform", "self_test"]
    assert [(row["fact"], row["caught"]) for row in report["self_test"]] == [("free-waits", True), ("blocking-waits-for-null", True)]
    for row in report["self_test"]:
        assert list(row) == ["fact", "caught", "seconds", "runs", "by"]
        assert len(row["by"]["program"].splitlines()) in (2, 3)
        assert row["by"]["expected"] != row["by"]["seen"]
    assert len(machine.children) == 1


def test_a_turned_fact_that_nobody_catches_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    """This GPU really does what the model says once it is turned."""
    assert run(options("--self-test", "--turn", "free-waits"), Machine("free-waits")) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].startswith("Fake · ")
    assert captured.out.splitlines()[-1].startswith("NOT CAUGHT")
    assert captured.out.rstrip().endswith("free-waits")
    assert "free-waits: NOT caught after" in captured.err


def test_all_that_are_turned_by_default_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    _, report = document(capsys, Machine(), "--self-test", "--seconds", "0")
    assert [row["fact"] for row in report["self_test"]] == list(command.TURNED)


def test_an_unknown_fact_has_a_nearest_name() -> None:
    with pytest.raises(StreamlintError) as problem:
        run(options("--self-test", "--turn", "free-wait"), Machine())
    assert str(problem.value) == "there is no fact 'free-wait'; did you mean 'free-waits'?"
