"""Which finding a cost belongs to, and what each finding and stall is told to be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from streamlint.findings import Category, Finding, Span, Step
from streamlint.support.records import replace
from streamlint.trace.join import NEVER_HELD, NO_TIME, NOT_IN_PARTS, NOT_SEEN, NOT_THERE, Seen, join
from streamlint.trace.model import Frame, Trace
from streamlint.trace.names import Names
from streamlint.trace.prices import price
from streamlint.trace.rendering.rows import rows
from streamlint.trace.results import Cost, Costs, Joined, Place

MS = 10**6
TEXT = """\
import torch


def step(loss):
    total = add(
        loss.item(),
    )
    for one in loader:
        log(one)


def log(one):
    print(one.cpu())
"""


def at(row: int, file: str = "a.py") -> Span:
    return Span(file, row, 5, row, 9)


def finding(row: int, code: str = "SL020", category: Category = Category.STALL, trail: Sequence[Step] = (), name: str = "step") -> Finding:
    return Finding(code, "a-rule", category, "message", at(row), tuple(trail), qualname=name)


def cost(row: int, idle: int = 10 * MS, kind: str = "wait", via: Sequence[Place] = (), **more: int) -> Cost:
    place = Place("a.py", (row,), "step")
    return Cost(place, "cudaStreamSynchronize", kind, calls=1, blocked=MS, idle=idle, avoidable=idle, via=tuple(via), **more)


def joined(findings: Sequence[Finding], costs: Sequence[Cost], seen: Seen | None = None, border: int | None = None) -> Joined:
    return join(Costs(1000 * MS, 0, 0, list(costs)), findings, seen or Seen(), {"a.py": TEXT}, border)


def test_a_cost_belongs_to_the_finding_whose_statement_holds_it() -> None:
    """The finding stands in line 6; the recording has the first line of the statement."""
    found = joined([finding(6)], [cost(5)])
    assert [(one.standing, one.cost and one.cost.idle) for one in found.judged] == [("COSTS", 10 * MS)]
    assert (found.unnamed, found.named, found.border) == ([], 10 * MS, 5 * MS)


def test_the_four_standings() -> None:
    seen = Seen({("a.py", 8)}, {("a.py", "step")})
    findings = [finding(5), finding(8), finding(9), finding(13, name="log"), finding(5, "SL006", Category.RACE)]
    found = joined(findings, [cost(5)], seen)
    assert [(one.standing, one.note) for one in found.judged] == [
        ("COSTS", ""),
        ("CHEAP", NEVER_HELD),
        ("NOT REACHED", NOT_SEEN),
        ("NOT REACHED", NOT_THERE),
        ("RACED ONLY", NO_TIME),
    ]


def test_of_a_run_that_was_recorded_in_parts_nobody_says_what_did_not_run() -> None:
    trace = Trace("recorded", left_out=MS)
    found = joined([finding(9)], [], Seen.of(trace, lambda file: file))
    assert [(one.standing, one.note) for one in found.judged] == [("NOT REACHED", NOT_IN_PARTS)]


@pytest.mark.parametrize(("idle", "border", "standing"), [(5 * MS, None, "COSTS"), (5 * MS - 1, None, "CHEAP"), (9 * MS, 10 * MS, "CHEAP")])
def test_the_border(idle: int, border: int | None, standing: str) -> None:
    assert joined([finding(5)], [cost(5, idle)], border=border).judged[0].standing == standing


def test_what_a_place_costs_is_the_largest_of_its_figures() -> None:
    """Blocked time alone is no cost: the GPU had work meanwhile."""
    figures = [{"gain": 9 * MS}, {"held_up": 9 * MS}, {"serialized": 9 * MS}, {}]
    found = [joined([finding(5)], [cost(5, 0, **more)]) for more in figures]
    assert [(one.judged[0].standing, one.named) for one in found] == [("COSTS", 9 * MS)] * 3 + [("CHEAP", 0)]


def test_several_costs_of_one_line_are_one() -> None:
    found = joined([finding(5)], [cost(5, 4 * MS, gain=MS), cost(6, 3 * MS, "copy")])
    (one,) = found.judged
    assert one.cost is not None
    assert (one.cost.idle, one.cost.gain, one.cost.calls, one.cost.kind) == (7 * MS, MS, 2, "wait")
    assert [place.lines for place in one.places] == [(5,), (6,)]


def test_two_findings_of_one_line_do_not_count_twice() -> None:
    found = joined([finding(5), finding(6, "SL021")], [cost(5)])
    assert ([one.standing for one in found.judged], found.named) == (["COSTS", "COSTS"], 10 * MS)


def test_ranks_are_held_against_the_border_one_by_one() -> None:
    found = joined([finding(5)], [cost(5, 3 * MS, process=1), cost(5, 3 * MS, process=2)])
    assert (found.judged[0].standing, found.processes) == ("CHEAP", 2)


def test_trails_lead_to_allocations_alone() -> None:
    """`pin-then-copy` stands at the copy, and its trail names the pinning; a wait in a trail is somebody else's."""
    trailing = [finding(5, "SL022", trail=[Step("pinned here", at(9))])]
    assert joined(trailing, [cost(9, kind="pin")]).judged[0].standing == "COSTS"
    assert joined(trailing, [cost(9, kind="wait")]).judged[0].standing == "NOT REACHED"


def test_the_head_of_a_loop_in_a_trail_is_no_place() -> None:
    found = joined([finding(5, trail=[Step("in this loop", at(8))])], [cost(8, kind="allocate")])
    assert (found.judged[0].standing, len(found.unnamed)) == ("NOT REACHED", 1)


def test_a_cost_in_a_function_belongs_to_the_nearest_caller_with_a_finding() -> None:
    callers = [Place("a.py", (9,), "step"), Place("a.py", (5,), "main")]
    found = joined([finding(5), finding(9)], [cost(13, via=callers)])
    assert [one.standing for one in found.judged] == ["NOT REACHED", "COSTS"]


def test_a_place_of_several_lines_belongs_to_a_finding_at_one_of_them() -> None:
    one = cost(9)
    one.place = Place("a.py", (9, 13), "step")
    assert joined([finding(13)], [one]).judged[0].standing == "COSTS"


def test_stalls_without_a_finding_by_cost() -> None:
    found = joined([], [cost(5, 6 * MS), cost(9, 9 * MS), cost(13, MS), cost(5, 5 * MS, "copy")])
    assert [(one.cost.place.lines, one.cost.idle) for one in found.unnamed] == [((5,), 11 * MS), ((9,), 9 * MS)]


def test_stalls_that_are_copies_alone_which_leave_the_host_alone() -> None:
    """A copy of pinned memory waits for nothing; a value that is copied and then waited for does."""
    copy = replace(cost(7, kind="copy"), call="cudaMemcpyAsync", source="pinned", destination="device")
    read = replace(copy, place=Place("a.py", (13,), "log"), source="device", destination="pinned")
    upload = replace(copy, place=Place("a.py", (8,), "step"), source="pageable")
    few = replace(cost(7, idle=0, kind="allocate"), call="cudaMalloc", blocked=MS // 20)  # beside the copies of its line
    found = joined([], [copy, few, read, cost(13, idle=5 * MS), upload])
    assert {one.cost.place.lines: one.is_direct for one in found.unnamed} == {(7,): True, (13,): False, (8,): False}


def test_what_a_recording_has_seen() -> None:
    frames = (Frame("/x/a.py", 4, "Model.step"), Frame("/lib/other.py", 1, "run"), Frame("/x/a.py", 0, "main", lines=(7, 9)))
    seen = Seen.of(Trace("kineto", stacks=[(), frames]), {"/x/a.py": "a.py"}.get)
    assert seen == Seen({("a.py", 4), ("a.py", 7), ("a.py", 9)}, {("a.py", "step"), ("a.py", "main")})


def test_names_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("src/a/model.py", "src/b/model.py", "other.py", "lib/site-packages/torch.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    names = Names(["src/a/model.py", "src/b/model.py"])
    assert names(str(tmp_path / "src/a/model.py")) == "src/a/model.py"
    assert names("/home/else/b/model.py") == "src/b/model.py"  # of another machine: the longest common end
    assert names("/home/else/model.py") == "/home/else/model.py"  # two fit equally well
    assert names(str(tmp_path / "other.py")) == "other.py"
    assert names(str(tmp_path / "lib/site-packages/torch.py")) is None
    assert names("<string>") is None
    assert [names.is_linted(name) for name in ("src/a/model.py", "other.py")] == [True, False]


def test_what_findings_cost_is_what_their_rows_say() -> None:
    """Of a line's copies the gain is the larger, of its waits the idle time: together they are one row."""
    copies, waits = cost(6, idle=0, kind="copy", gain=8 * MS), cost(6, idle=10 * MS, gain=MS)
    answer = joined([finding(6)], [copies, waits])
    assert [price(row.cost) for row in rows(answer)] == [answer.named] == [10 * MS]
