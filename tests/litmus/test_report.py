"""Reports of made-up sessions: the text for people, to the letter."""

from __future__ import annotations

from streamlint.litmus import report
from streamlint.litmus.program import parse
from streamlint.litmus.session import Disagreement, Tally

PLATFORM = {"gpu": "Fake", "driver": "580.159.03", "cuda_runtime": "13.0"}
FREE = Disagreement(parse("T0 launch @n1 <gate\nT0 free"), frozenset({"h0"}), frozenset({"h0", "h1"}), violation=False, times=2)
ENTRY = {"program": "T0 launch @n1 <gate\nT0 free", "expected": "h0", "seen": "h0 h1", "violation": False, "times": 2}
NULL = Disagreement(parse("T0 launch @null <gate\nT0 launch @b1"), frozenset({"h0", "h1"}), frozenset({"h0", "h1", "d1"}), violation=True)
ODD = Disagreement(parse("T0 launch @n1 <gate"), frozenset({"h0"}), frozenset(), violation=False)


def tally(**more: object) -> Tally:
    return Tally(programs=30, runs=100, agreed=96, disagreed=3, violations=1, unsteady=1, seconds=12.34, **more)  # type: ignore[arg-type]


def test_the_document_holds_all_figures_and_the_most_frequent_first() -> None:
    found = report.document(
        tally(disagreements=[NULL, FREE], unsteady_programs=[ODD] * 25, facts={"free-waits": False}, void=1, reasons={"no gate": 1}),
        PLATFORM,
        5,
    )
    assert (found["programs"], found["runs"], found["agreed"], found["agreement"], found["seconds"]) == (30, 100, 96, 0.96, 12.3)
    assert (found["disagreed"], found["violations"], found["not_repeatable"], found["void"], found["hung"]) == (3, 1, 1, 1, 0)
    assert found["disagreements"] == [
        ENTRY,
        {"program": str(NULL.program), "expected": "h0 h1", "seen": "h0 d1 h1", "violation": True, "times": 1},
    ]
    assert (
        found["not_repeatable_programs"]
        == [{"program": "T0 launch @n1 <gate", "expected": "h0", "seen": "nothing", "violation": False, "times": 1}] * 20
    )
    assert found["facts"] == {"free-waits": False}
    assert found["void_reasons"] == {"no gate": 1}
    assert (found["schema"], found["seed"], found["peers"], found["platform"]) == (1, 5, False, PLATFORM)


def test_the_text() -> None:
    shown = report.document(
        tally(disagreements=[NULL, FREE], void=4, reasons={"no gate": 1, "stuck": 3}, platform={"peers": True}), PLATFORM, None
    )
    assert (
        report.text(shown)
        == """\
Fake · driver 580.159 · CUDA 13.0, two devices

30 programs, 100 runs in 12 s
96 as expected (96.00%); 3 otherwise, of them 1 outside of what the model allows; 1 not repeatable
4 without an outcome:
  3 x stuck
  1 x no gate

not as expected, 2 x
    T0 launch @n1 <gate
    T0 free
  expected  h0
  seen      h0 h1

OUTSIDE THE MODEL, 1 x
    T0 launch @null <gate
    T0 launch @b1
  expected  h0 h1
  seen      h0 d1 h1

hN: call N returned; dN: its work on the device ended; rN: query N said ready; xN:S: refused with status S"""
    )


def test_the_text_of_a_session_without_disagreement_ends_with_the_figures() -> None:
    text = report.text(report.document(Tally(programs=3, runs=9, agreed=9, seconds=1.0), PLATFORM, 1))
    assert text.splitlines()[-1] == "9 as expected (100.00%); 0 otherwise, of them 0 outside of what the model allows; 0 not repeatable"


def test_the_text_of_a_self_test() -> None:
    caught = report.turned("free-waits", Tally(disagreements=[FREE], seconds=0.31, runs=12))
    missed = report.turned("event-order", Tally(seconds=60.0, runs=4321))
    assert caught == {"fact": "free-waits", "caught": True, "seconds": 0.3, "runs": 12, "by": ENTRY}
    assert missed == {"fact": "event-order", "caught": False, "seconds": 60.0, "runs": 4321}
    assert report.self_test_text({"platform": PLATFORM, "self_test": [caught, missed]}).splitlines() == [
        "Fake · driver 580.159 · CUDA 13.0",
        "",
        "caught        0.3 s     12 runs  free-waits",
        "NOT CAUGHT   60.0 s   4321 runs  event-order",
    ]


def test_programs_as_text() -> None:
    assert report.programs_text(Tally(disagreements=[FREE, NULL])) == (
        "# expected h0\n# seen     h0 h1\nT0 launch @n1 <gate\nT0 free\n"
        "\n"
        "# expected h0 h1\n# seen     h0 d1 h1\nT0 launch @null <gate\nT0 launch @b1\n"
    )
