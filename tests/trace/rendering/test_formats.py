"""The table, Markdown, JSON and SARIF of one answer, word for word where people read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fake_answers import FINDINGS, view
from fake_runs import MS

from streamlint.commands import schema
from streamlint.trace.rendering import render, words
from streamlint.trace.results import Cost, Costs, Joined, Judged, Place, Unnamed


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shown(format: str, **more: object) -> str:
    return render(format, view(Path(), **more))


FULL = """\
run.slt: 58.5 ms on NVIDIA H100 80GB HBM3; the GPU was idle for 37.1 ms (63 %), the host was blocked
  for 21.0 ms

    cost                   GPU idle  blocked  calls   place
 10.1 ms  █▍         17 %   10.1 ms  19.6 ms     10   train.py:6 in train
    clip(parameters, 1.0)
    cudaStreamSynchronize (aten::is_nonzero); without the wait about 10.1 ms shorter (estimate)
    no finding: no rule reports <this>

  910 µs  ▏         1.6 %   27.0 ms  1.01 ms     10   train.py:8 in train
    total += loss.item()  # <b>
    cudaStreamSynchronize (aten::item); without the wait about 910 µs shorter (estimate)
    SL020 hidden-sync-in-hot-loop: the host waits <here>

CHEAP        train.py:3  SL001 unpinned-non-blocking: 400 µs blocked
NOT REACHED  train.py:12  SL021 device-sync-in-hot-loop: its function is not in the recording
NOT REACHED  train.py:12  SL010 pageable-d2h-stall: its function is not in the recording
RACED ONLY   train.py:4  SL006 cross-stream-use-without-wait: a race costs no time that could be shown

note: half of it could not be read
"""

MARKDOWN = """\
## streamlint trace: 1 of 5 findings costs 1.6 % of the run; 1 stall has no finding

run.slt: 58.5 ms on NVIDIA H100 80GB HBM3; the GPU was idle for 37.1 ms (63 %), the host was blocked for 21.0 ms

| cost | share | gain (estimate) | GPU idle behind it | host blocked | calls | place | finding |
|--:|--:|--:|--:|--:|--:|---|---|
| 10.1 ms | 17 % | 10.1 ms | 10.1 ms | 19.6 ms | 10 | `train.py:6`<br>`clip(parameters, 1.0)`<br>cudaStreamSynchronize (aten::is_nonzero) \
| no finding: no rule reports &lt;this> |
| 910 µs | 1.6 % | 910 µs | 27.0 ms | 1.01 ms | 10 | `train.py:8`<br>`total += loss.item()  # <b>`<br>cudaStreamSynchronize (aten::item) \
| [hidden-sync-in-hot-loop](https://streamlint.readthedocs.io/rules/hidden-sync-in-hot-loop/) SL020: the host waits &lt;here> |

**CHEAP**

* `train.py:3` [unpinned-non-blocking](https://streamlint.readthedocs.io/rules/unpinned-non-blocking/) SL001: 400 µs blocked
"""


def test_the_table() -> None:
    assert shown("full") == FULL


def test_the_table_is_cut_and_says_so() -> None:
    text = shown("full", top=1)
    assert "train.py:8" not in text
    assert "    1 more place, 910 µs together: --top 2 shows it\n" in text
    assert "NOT REACHED  1 more\n" in text


def test_colours_do_not_change_the_words() -> None:
    import re

    text = shown("full", color=True)
    assert "\x1b[1;31m▏       \x1b[0m" in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == FULL


def test_markdown() -> None:
    assert shown("markdown").startswith(MARKDOWN)


def test_json_fits_its_schema() -> None:
    data = json.loads(shown("json"))
    jsonschema.validate(data, schema.trace())
    assert data["summary"] == {"findings": 5, "costing": 1, "cost_ns": 910_000, "share": 0.0156, "stalls": 1}
    assert [(row["code"], row["run"]["standing"]) for row in data["findings"]] == [
        ("SL020", "COSTS"),
        ("SL001", "CHEAP"),
        ("SL021", "NOT REACHED"),
        ("SL010", "NOT REACHED"),
        ("SL006", "RACED ONLY"),
    ]
    cost = data["findings"][0]["run"]["cost"]
    assert (cost["filename"], cost["lines"], cost["calls"], cost["idle_ns"], cost["gain_ns"]) == ("train.py", [8], 10, 27_009_000, 910_000)
    assert cost["summary"] == (
        "910 µs (1.6 % of the run); the host was blocked for 1.01 ms in 10 calls; the GPU was idle for 27.0 ms behind it; "
        "without the wait the run would be about 910 µs shorter (estimate)"
    )
    assert [(row["kind"], row["reason"], row["cost"]["lines"]) for row in data["stalls"]] == [("no rule", "no rule reports <this>", [6])]
    assert data["run"]["notes"] == ["half of it could not be read"]


def test_sarif_has_costs_and_ranks() -> None:
    (run,) = json.loads(shown("sarif"))["runs"]
    results: dict[str, Any] = {result["ruleId"]: result for result in run["results"]}
    assert (results["SL020"]["rank"], results["SL020"]["properties"]["run"]["standing"]) == (1.56, "COSTS")
    assert "rank" not in results["SL006"]
    assert results["SL006"]["properties"]["run"]["standing"] == "RACED ONLY"
    assert [stall["cost"]["lines"] for stall in run["properties"]["trace"]["stalls"]] == [[6]]


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(0, "0 ms"), (850, "850 ns"), (999_600, "1.00 ms"), (12_345_678, "12.3 ms"), (179 * MS, "179 ms"), (1_240 * MS, "1.24 s")],
)
def test_times(nanoseconds: int, text: str) -> None:
    assert words.time(nanoseconds) == text


def test_shares() -> None:
    joined = Joined(Costs(1_000_000, 0, 0))
    assert [words.share(joined, one) for one in (0, 400, 4_000, 38_400, 384_000)] == ["0 %", "< 0.1 %", "0.4 %", "3.8 %", "38 %"]


def test_the_last_line() -> None:
    dear, cheap = (Judged(FINDINGS[0], standing) for standing in ("COSTS", "CHEAP"))
    costs, stall = Costs(100, 0, 0), Unnamed(Cost(Place("a.py", (1,)), "cudaFree", "free"), "")
    assert [
        words.last_line(Joined(costs, judged, stalls, named=named))
        for judged, stalls, named in (
            ([dear, dear, cheap], [stall] * 3, 38),
            ([dear], [stall], 5),
            ([cheap, cheap], [], 0),
            ([cheap], [], 0),
            ([], [], 0),
        )
    ] == [
        "2 of 3 findings cost 38 % of the run; 3 stalls have no finding",
        "1 of 1 finding costs 5.0 % of the run; 1 stall has no finding",
        "none of 2 findings costs anything in this run; no stall is without a finding",
        "the finding costs nothing in this run; no stall is without a finding",
        "no findings; no stall is without a finding",
    ]


def test_places_that_are_not_exact() -> None:
    assert words.at(Place("a.py", (4, 9))) == "a.py, one of lines 4, 9"
    assert words.at(Place("", ())) == "(no line known)"
