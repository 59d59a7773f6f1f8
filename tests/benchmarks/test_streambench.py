"""StreamBench: what its templates become, which twins there are, and how an answer is scored."""

from __future__ import annotations

import ast
import importlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks/streambench").is_dir(), reason="benchmarks are not in the source distribution")

TEMPLATE = """\
- name: small
  hazard: SL005
  api: torch
  why: Read early.
  imports: [import torch]
  takes: [host]
  gives: text
  oracle: race
  body: |
    stream = torch.cuda.current_stream()
    host = torch.rand(8, device="cuda").to("cpu", non_blocking=True)  #: mark
    SECOND
    stream.synchronize()
    return text
  second: |
    torch.cuda.synchronize()  #: good
    text = host.tolist()  #: mark
"""


@pytest.fixture(scope="module")
def bench() -> Any:
    return importlib.import_module("benchmarks.streambench.cases")


@pytest.fixture(scope="module")
def everything(bench: Any) -> list[Any]:
    return list(importlib.import_module("benchmarks.streambench.tracks").read())


@pytest.fixture
def small(tmp_path: Path) -> Any:
    (tmp_path / "small.yml").write_text(TEMPLATE)
    (found,) = importlib.import_module("benchmarks.streambench.pieces").read_templates(tmp_path)
    return found


def score() -> Any:
    return importlib.import_module("benchmarks.streambench.score")


def test_tracks(everything: list[Any]) -> None:
    """Every rule, more than a thousand pairs, no name twice, a mark in each bad program."""
    micro = [case for case in everything if case.track == "micro"]
    assert len(micro) > 2000
    assert {case.hazard for case in micro} == set(importlib.import_module("benchmarks.streambench.tools").HAZARDS)
    assert sum(case.track == "hand" for case in everything) >= 30
    assert sum(case.track == "blind" for case in everything) >= 200
    assert sum(case.track == "quiet" for case in everything) >= 60
    assert len({case.name for case in everything}) == len(everything)
    assert all(bool(case.marks) != (case.track == "quiet") and case.clean and case.why for case in everything)


def test_twins_differ_by_the_repair_alone(bench: Any, small: Any) -> None:
    case = bench.build(small, "direct")
    bad, clean = case.bad["program.py"].splitlines(), case.clean["program.py"].splitlines()
    assert [line for line in clean if line not in bad] == ["    torch.cuda.synchronize()"]
    assert [line for line in clean if line in bad] == bad
    assert [bad[row - 1].strip() for _, row in case.marks] == [
        'host = torch.rand(8, device="cuda").to("cpu", non_blocking=True)',
        "text = host.tolist()",
    ]


def test_a_first_part_hands_on_what_is_used_later(bench: Any, small: Any) -> None:
    text = bench.build(small, "returned").bad["program.py"]
    assert "return host, stream\n" in text
    held = bench.build(small, "method-pair").bad["program.py"]
    assert re.search(r"    (\w+)\.start\(\)\n    text = \1\.finish\(\)\n    \1\.stream\.synchronize\(\)\n", held)


def test_chains(bench: Any, small: Any) -> None:
    case = bench.build(small, "files", 5)
    assert (len(case.bad), case.functions, case.way, len(case.links)) == (6, 6, "files-5", 5)
    assert bench.build(small, "files", 5) == case
    padded = bench.build(small, "branches", branches=8)
    assert padded.bad["program.py"].count("if len(sys.argv)") == 8


def test_programs_can_be_read(everything: list[Any]) -> None:
    """Python parses; braces of C++ are balanced; all that are written, and each third generated case, which keeps templates and ways."""
    micro = [case for case in everything if case.track == "micro"]
    for case in (*micro[::3], *(case for case in everything if case.track != "micro")):
        for path, text in {**case.bad, **{f"clean/{name}": text for name, text in case.clean.items()}}.items():
            if path.endswith(".py"):
                ast.parse(text)
            else:
                assert text.count("{") == text.count("}"), (case.name, path)


def test_further_ways(bench: Any, small: Any) -> None:
    """A sample that the seed draws; each way of Python by itself parses, marks the operations, and has a name of its own."""
    ways = importlib.import_module("benchmarks.streambench.more_ways")
    plain = importlib.import_module("benchmarks.streambench.python_ways").WAYS
    assert len(ways.PYTHON) > 150
    assert not ways.PYTHON.keys() & plain.keys()
    everything = bench.further(small, None)
    assert len(everything) == len(ways.PYTHON)
    assert bench.further(small, 1) == bench.further(small, 1) != bench.further(small, 2)
    assert len(bench.further(small, 1)) == bench.SAMPLE
    for way in everything:
        case = bench.build(small, way)
        assert len(case.marks) >= 2, way
        assert case.bad != case.clean, way
        for text in (*case.bad.values(), *case.clean.values()):
            ast.parse(text)


def test_ways_that_do_not_fit(bench: Any, small: Any) -> None:
    """What is dropped is not kept elsewhere; no thread where a template forbids one; nothing to carry; a part that stands in a block."""
    dropping = replace(small, hazard="SL007", body=small.body + "\ndel host")
    assert not {"dict-key", "constructed", "submitted"} & {*bench.further(dropping, None)}
    assert {"static-method", "registered"} <= {*bench.further(dropping, None)}
    assert "worker-queue" not in bench.further(replace(small, without=frozenset({"thread"})), None)
    assert "dict-key" not in bench.further(replace(small, takes=()), None)
    assert "result-object" not in bench.further(replace(small, body="if True:\n    SECOND"), None)
    assert "frozen" not in bench.further(replace(small, gives="host"), None)
    assert not bench.further(replace(small, only_ways=frozenset({"direct"})), None)


def test_pairs_that_were_written(everything: list[Any]) -> None:
    """A hazard of a rule, two versions of the same files that differ, no mark left in a text, and a name that says track and hazard."""
    known = importlib.import_module("benchmarks.streambench.tools").HAZARDS
    for case in everything:
        if case.track == "blind":
            assert case.hazard in known, case.name
            assert case.bad.keys() == case.clean.keys(), case.name
            assert case.bad != case.clean, case.name
            assert "#: " not in "".join((*case.bad.values(), *case.clean.values())), case.name
            assert case.name.startswith(f"blind-{case.hazard.lower()}-"), case.name


def test_score(bench: Any, small: Any) -> None:
    case, told = bench.build(small, "helper"), score()
    operation, call = case.marks[-1][1], case.links[0][1]
    found = told.judge(case, {f"{case.name}/bad": [("SL005", "program.py", operation)]})
    assert (found.found, found.flagged, found.elsewhere) == (True, False, False)
    assert told.judge(case, {f"{case.name}/bad": [("SL005", "program.py", call)]}).found
    other = told.judge(case, {f"{case.name}/bad": [("SL006", "program.py", operation), ("SL005", "program.py", 1)]})
    assert (other.found, other.elsewhere) == (False, True)
    flagged = told.judge(case, {f"{case.name}/clean": [("SL005", "program.py", 1)]})
    row = told.count("all", [found, flagged])
    assert (row.recall, row.alarms, row.youden) == (0.5, 0.5, 0.0)
    assert list(told.table("hazard", [row]))[2] == "| all | 1 of 2 | 50.0 % | 1 of 2 | 50.0 % | 0.00 | 0 |"


def test_answers(tmp_path: Path) -> None:
    """Relative and absolute addresses; a rule that speaks of no hazard is left out."""
    sarif = importlib.import_module("benchmarks.streambench.sarif")
    results = [sarif.result("a.item-in-loop", "", "one/bad/program.py", 3), sarif.result("X1", "", str(tmp_path / "one/clean/b/c.py"), 4)]
    found = score().answers(sarif.log("tool", results), tmp_path, {"item-in-loop": ("SL020",), "X1": ("SL001",)})
    assert found == {"one/bad": [("SL020", "program.py", 3)], "one/clean": [("SL001", "b/c.py", 4)]}


def test_yaml_of_a_case(bench: Any, small: Any, tmp_path: Path) -> None:
    case = bench.build(small, "other-file")
    bench.write(case, tmp_path)
    folder = tmp_path / case.name
    told = importlib.import_module("benchmarks.streambench.oracle").described(folder)
    assert told["places"] == [f"{path}:{row}" for path, row in case.marks]
    assert told["look"] == {"functions": 2, "files": 2}
    assert (folder / "clean/program.py").read_text() == case.clean["program.py"]


def test_bad_templates(tmp_path: Path) -> None:
    pieces = importlib.import_module("benchmarks.streambench.pieces")
    for wrong, message in ((("SECOND", "THIRD"), "one line SECOND"), (("#: mark", ""), "no line is marked"), (("why", "wy"), "wy")):
        (tmp_path / "small.yml").write_text(TEMPLATE.replace(*wrong))
        with pytest.raises(pieces.BenchError, match=message):
            pieces.read_templates(tmp_path)


def test_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = importlib.import_module("benchmarks.streambench.__main__").main
    assert main(["run", "--only", "torch-sl005-to-cpu-direct", "--missed", "--json", str(tmp_path / "told.json")]) == 0
    assert "| all | 1 of 1 | 100.0 % | 0 of 1 | 0.0 % | 1.00 | 0 |" in capsys.readouterr().out
    assert json.loads((tmp_path / "told.json").read_text())["wrong"] == []
    assert main(["run", "--only", "no such case"]) == 2
    assert main(["run", "--track", "fixes"]) == 2
    assert "--mirrors DIR" in capsys.readouterr().err


def test_real_fixes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A finding within five lines finds the bug; one beside the mended place is a false alarm; clones that are not there are left out."""
    fixes = importlib.import_module("benchmarks.streambench.fixes")
    known = [fix for fix in fixes.read_fixes() if fix.path.endswith(".py")][:2]
    monkeypatch.setattr(fixes, "read_fixes", lambda: known)
    monkeypatch.setattr(fixes, "clone_of", lambda repository, _: object() if repository == known[0].repository else None)
    monkeypatch.setattr(fixes, "needed", lambda _, revision, fix: {fix.path: revision.encode()})
    case = next(iter(fixes.cases(tmp_path)))
    fix = known[0]
    assert (case.bad[fix.path], case.clean[fix.path], case.hazard) == (f"{fix.commit}^", fix.commit, fix.rule)
    told = score()
    near = told.judge(case, {f"{case.name}/bad": [(fix.rule, fix.path, fix.before[0] + 5)]})
    far = told.judge(case, {f"{case.name}/bad": [(fix.rule, fix.path, max(fix.before) + 6)]})
    assert (near.found, far.found) == (True, False)
    alarm, elsewhere = (
        told.judge(case, {f"{case.name}/clean": [(fix.rule, fix.path, row)]}).flagged for row in (fix.after[0], max(fix.after) + 2)
    )
    assert (alarm, elsewhere) == (True, False)


def test_the_page_is_that_of_the_records() -> None:
    page = importlib.import_module("benchmarks.streambench.page")
    assert page.PAGE.read_text(encoding="utf-8") == page.text()


def test_oracle_asks_direct_programs_first(bench: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases for which there was no time are left out of the record, and so are those that no GPU can show."""
    oracle = importlib.import_module("benchmarks.streambench.oracle")
    for way in ("closure", "direct", "helper"):
        bench.write(replace(bench.build(small, way), oracle="" if way == "closure" else "race"), tmp_path / "tree")
    asked: list[str] = []

    def apart(folder: Path, kind: str, until: float) -> dict[str, Any]:
        asked.append(folder.name)
        return {"failure": oracle.NO_TIME} if len(asked) > 1 else {"bad": 3, "clean": 0, "runs": 20}

    monkeypatch.setattr(oracle, "apart", apart)
    monkeypatch.setattr(oracle, "platform", lambda: {"gpu": "GPU", "driver": "1"})
    oracle.ask_all(tmp_path / "tree", tmp_path / "oracle-gpu.json", 1, 60)
    assert asked == ["small-direct", "small-helper"]
    assert json.loads((tmp_path / "oracle-gpu.json").read_text())["cases"] == {
        "small-direct": {"oracle": "race", "bad": 3, "clean": 0, "runs": 20}
    }


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([1.0, [2.0]], [1.0, [2.0 + 1e-7]], True),
        ([1.0], [1.0, 1.0], False),
        (float("nan"), float("nan"), True),
        (1.0, 1.1, False),
        (None, None, True),
    ],
)
def test_values_are_alike_but_for_rounding(first: Any, second: Any, same: bool) -> None:
    assert importlib.import_module("benchmarks.streambench.oracle").alike(first, second) is same


def test_results_of_a_gpu(bench: Any, small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case shows its hazard where its bad program does and its twin does not; without an oracle it is latent."""
    assert [bench.shows(told) for told in ({"bad": 1, "clean": 0}, {"bad": 5, "clean": 1}, {"bad": 0, "clean": 0}, {"failure": "x"})] == [
        True,
        False,
        False,
        False,
    ]
    direct, helper = bench.build(small, "direct"), bench.build(small, "helper")
    monkeypatch.setattr(bench, "oracle_results", dict)
    assert (bench.result_of(direct), bench.result_of(replace(direct, oracle=""))) == ("not run", "latent")
    monkeypatch.setattr(bench, "oracle_results", lambda: {"small-direct": "3 of 20 (GPU)"})
    assert (bench.result_of(direct), bench.result_of(helper)) == ("3 of 20 (GPU)", "not run; the direct program: 3 of 20 (GPU)")


def test_what_tools_print() -> None:
    """Lines with a column and without, in colours; JSON of files; a rule that says several things."""
    readers = importlib.import_module("benchmarks.streambench.readers")
    text = "a/bad/p.py:3:7: TOR101 deprecated\nb/bad/p.py:4: \x1b[91merror:\x1b[0m unpinned\nFinished checking 2 files.\n"

    def told(log: dict[str, Any]) -> list[tuple[str, int]]:
        (run,) = log["runs"]
        return [(each["ruleId"], each["locations"][0]["physicalLocation"]["region"]["startLine"]) for each in run["results"]]

    assert told(readers.lines(text)) == [("TOR101", 3), ("error", 4)]
    found = {"rule_id": "KP002", "line": 9, "message": "no pinning"}
    assert told(readers.hotpath(json.dumps({"files": [{"path": "p.py", "findings": [found]}]}))) == [("KP002", 9)]
    sarif = importlib.import_module("benchmarks.streambench.sarif")
    results = [sarif.result("TG004", f"does not set `{word}`", "p.py", row) for row, word in ((1, "pin_memory"), (2, "num_workers"))]
    assert told(readers.preflight(json.dumps(sarif.log("t", results)))) == [("TG004-pin", 1), ("TG004", 2)]


def test_tools_that_watch_a_run(tmp_path: Path) -> None:
    """A number that is printed last, one match for each report, and a program that did not end."""
    dynamic = importlib.import_module("benchmarks.streambench.dynamic")
    csan, check = dynamic.Watcher(counts="CSAN detected a possible"), dynamic.Watcher(counts=r"ERROR SUMMARY: (\d+) error")
    end = "END OF PROGRAM\n"
    assert csan.spoke(f"CSAN detected a possible\nCSAN detected a possible\n{end}") == 2
    assert csan.spoke("CSAN detected a possible\n") is None
    assert csan.spoke("CSAN detected a possible\n", 66) == 1
    assert csan.spoke("ThreadSanitizer:DEADLYSIGNAL\n", 66) is None
    assert check.spoke(f"{end}========= ERROR SUMMARY: 12 errors\n") == 12
    assert check.spoke(f"{end}========= ERROR SUMMARY: 0 errors\n") == 0
    assert "vllm" in dynamic.watchers(tmp_path)
    assert "vllm" not in dynamic.watchers(None)
    assert dynamic.watchers(None, tmp_path)["cusan"].libraries == {"cuda-c++"}
