"""Sessions with a made-up GPU: what agrees, what is caught, how it is told, and children that do not behave."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from fake_gpu import FakeGpu, Machine, Odd, saw

from streamlint.cuda_model import FACTS, Fact, Strength
from streamlint.litmus import generate, session
from streamlint.litmus.predict import can_be_held, observed, strengths
from streamlint.litmus.program import Program, needs_peers, parse
from streamlint.litmus.session import NothingRanError, Session, Tally, progress_line

ALONE = [fact for fact in FACTS.values() if not needs_peers(parse(fact.shown_by))]
EACH = pytest.mark.parametrize("fact", FACTS.values(), ids=FACTS)
FIRM = (Strength.NEVER, Strength.GUARANTEED)  # of what is firm the opposite is outside of the model
TEXTS = ("T0 launch @n1 <gate\nT0 launch @n2", "T0 launch @b1 <gate\nT0 launch @null", "T0 launch @n1 <gate\nT0 free")
PROGRAMS = [parse(text) for text in TEXTS]


def begin(machine: Machine) -> Session:
    found = Session(machine, strengths())
    found.start()
    return found


def replayed(odd: Odd, programs: list[Program] = PROGRAMS) -> tuple[Machine, Tally]:
    """Programs on a machine that says odd things."""
    machine = Machine(odd=odd)
    return machine, begin(machine).replay(programs)


def programs_run(number: int) -> Callable[[Tally], bool]:
    return lambda tally: tally.programs >= number


# Agreement --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("peers", [False, True])
def test_a_gpu_that_does_what_the_model_says_agrees(peers: bool) -> None:
    machine = Machine(peers=peers)
    tally = begin(machine).fuzz(1, float("inf"), enough=programs_run(200))
    assert (tally.programs, tally.runs) == (200, len(machine.asked))
    assert tally.agreed == tally.runs > 400
    assert tally.agreement == 1.0
    assert (tally.disagreed, tally.violations, tally.unsteady, tally.void, tally.hung) == (0,) * 5
    assert (tally.disagreements, tally.unsteady_programs, tally.reasons) == ([], [], {})
    assert tally.seconds > 0
    assert tally.platform == {"peers": peers, "gpu": "Fake", "cuda_runtime": "13.0"}
    assert any(needs_peers(program) for program in machine.asked) is peers


def test_programs_are_run_with_each_gate_outside_of_captures() -> None:
    machine = Machine()
    begin(machine).fuzz(1, float("inf"), enough=programs_run(30))
    drawn = list(itertools.islice(generate.programs(1), 30))
    held = [program.gated(gate, program.kind) for program in drawn for gate in program.gates()]
    wanted = [program for program in held if can_be_held(program, strengths())]
    assert machine.asked == wanted[: len(machine.asked)]
    assert len(wanted) - len(machine.asked) < len(drawn[-1].gates()), "it stops at the first run of the last program"


def test_time_ends_a_session() -> None:
    assert begin(Machine()).fuzz(1, 0.0).runs == 1


def test_a_replay_runs_the_programs_as_they_are() -> None:
    machine, tally = replayed(lambda _gpu, _program: ...)
    assert machine.asked == PROGRAMS
    assert (tally.programs, tally.runs, tally.agreed) == (3, 3, 3)


def test_pairs_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    some = list(itertools.islice(generate.pairs(), 40))
    monkeypatch.setattr(generate, "pairs", lambda: iter(some))
    machine = Machine()
    assert begin(machine).pairs().agreed == 40
    assert machine.asked == some


# Facts that are not so --------------------------------------------------------------------------------------------------------


@EACH
def test_a_gpu_that_differs_in_a_fact_is_caught(fact: Fact) -> None:
    """By the fact's own program, which is as small as it can be; outside of the model where the fact is firm."""
    two = fact not in ALONE
    differs = begin(Machine(fact.name, peers=two))
    differs.show_facts()
    assert differs.tally.facts[fact.name] is False
    assert differs.tally.disagreed >= 1
    assert bool(differs.tally.violations) is (fact.strength in FIRM)
    assert {entry.violation for entry in differs.tally.disagreements} <= {fact.strength in FIRM, False}
    for entry in differs.tally.disagreements:
        assert entry.expected == observed(entry.program, strengths())
        assert entry.seen == observed(entry.program, strengths(fact.name)) != entry.expected
    assert min(len(entry.program.calls) for entry in differs.tally.disagreements) <= len(parse(fact.shown_by).calls)


def test_a_gpu_that_does_what_the_model_says_shows_every_fact() -> None:
    for peers in (False, True):
        alike = begin(Machine(peers=peers))
        alike.show_facts()
        assert alike.tally.facts == dict.fromkeys(FACTS if peers else [fact.name for fact in ALONE], True)
        assert alike.tally.agreed == alike.tally.runs == alike.tally.programs == len(alike.tally.facts)


@pytest.mark.parametrize(
    ("fact", "calls"),
    [
        ("blocking-waits-for-null", 2),
        ("null-waits-for-blocking", 2),
        ("null-barrier-holds-nonblocking", 2),
        ("stream-synchronize-waits", 2),
        ("d2h-pageable-async-waits", 1),
        ("h2d-pageable-big-async-waits", 1),
        ("free-waits", 2),
        ("calls-take-the-context-lock", 2),
        ("pageable-copy-on-null-holds-all", 2),
        ("free-holds-all", 3),
    ],
)
def test_random_programs_catch_it_too_and_are_shrunk(fact: str, calls: int) -> None:
    random = begin(Machine(fact))
    tally = random.fuzz(1, float("inf"), enough=lambda tally: tally.disagreed > 0 or tally.programs > 400)
    (caught,) = tally.disagreements
    assert caught.violation is (FACTS[fact].strength in FIRM)
    assert calls <= len(caught.program.calls) <= calls + 1
    assert caught.seen == observed(caught.program, strengths(fact))


def test_disagreements_with_one_cause_are_counted_and_not_all_kept() -> None:
    machine = Machine("free-waits")
    told: list[str] = []
    many = Session(machine, strengths(), told.append)
    many.start()
    tally = many.replay([parse(f"T0 launch @{stream} <gate\nT1 free") for stream in ("n1", "n2", "n1", "n2", "n1")])
    assert (tally.disagreed, tally.violations, tally.agreed) == (5, 0, 0)
    assert [(str(entry.program), entry.times) for entry in tally.disagreements] == [
        ("T0 launch @n1 <gate\nT0 free", 2),
        ("T0 launch @n2 <gate\nT0 free", 1),
    ]
    assert sum(line.startswith("disagreement:\nT0 launch") for line in told) == 2


def test_what_is_outside_of_the_model_is_counted_where_the_whole_program_allows_too_much_to_list() -> None:
    """Thirteen host functions that may each be held: more than 4,096 outcomes. The minimal program has few, and is outside of them."""
    text = "\n".join(["T0 launch @null <hostgate", *["T0 launchHostFunc @n1"] * 13, "T0 launch @n2"])
    tally = begin(Machine("null-barrier-holds-nonblocking")).replay([parse(text)])
    (entry,) = tally.disagreements
    assert str(entry.program) == "T0 launch @null <hostgate\nT0 launch @n2"
    assert entry.violation
    assert (tally.disagreed, tally.violations) == (1, 1)


def test_another_model_begins_a_new_tally_on_the_same_child() -> None:
    machine = Machine()
    turned = begin(machine)
    assert turned.replay(PROGRAMS).disagreed == 0
    turned.restart(strengths("free-waits"))
    assert (turned.tally.runs, turned.tally.platform["gpu"]) == (0, "Fake")
    tally = turned.replay(PROGRAMS)
    assert (tally.runs, tally.disagreed) == (3, 1)
    assert len(machine.children) == 1


# Runs that say nothing --------------------------------------------------------------------------------------------------------


def test_what_does_not_repeat_is_no_disagreement() -> None:
    def wavers(gpu: FakeGpu, program: Program) -> object:
        return saw("h0") if program == PROGRAMS[0] and gpu.times[str(program)] == 1 else ...

    _, tally = replayed(wavers)
    assert (tally.runs, tally.agreed, tally.unsteady, tally.disagreed, tally.void) == (3, 2, 1, 0, 0)
    assert tally.agreement == pytest.approx(2 / 3)
    (entry,) = tally.unsteady_programs
    assert (entry.program, entry.seen, entry.violation) == (PROGRAMS[0], {"h0"}, False)
    assert tally.disagreements == []


def test_a_disagreement_must_be_seen_three_times() -> None:
    def tires(gpu: FakeGpu, program: Program) -> object:
        return saw("h0") if program == PROGRAMS[0] and gpu.times[str(program)] <= session.REPEATS else ...

    _, tally = replayed(tires)
    assert (tally.unsteady, tally.disagreed) == (1, 0)


def test_a_run_without_an_outcome_is_void_and_its_reason_counted() -> None:
    def no_gate(_gpu: FakeGpu, program: Program) -> object:
        return ... if program == PROGRAMS[2] else saw("h0", problem="no gate: the kernel did not start")

    told: list[str] = []
    void = Session(Machine(odd=no_gate), strengths(), told.append)
    tally = void.replay(PROGRAMS)
    assert (tally.runs, tally.agreed, tally.void, tally.hung) == (1, 1, 2, 0)
    assert tally.reasons == {"no gate: the kernel did not start": 2}
    assert told == [f"no outcome (no gate: the kernel did not start):\n{PROGRAMS[0]}"], "a reason is told once"


@pytest.mark.parametrize(
    ("said", "reason", "hung"),
    [
        (saw("h0", problem="calls [1] did not return", hung=True), "calls [1] did not return", 1),
        (TimeoutError, "the child was silent for 30 s", 1),
        (None, "the child broke: the child died of SIGSEGV", 0),
        ({"event": "broken", "reason": "ValueError: boom"}, "the child broke: ValueError: boom", 0),
    ],
)
def test_a_child_that_hangs_or_breaks_is_killed_and_another_goes_on(said: object, reason: str, hung: int) -> None:
    machine, tally = replayed(lambda _gpu, program: said if program == PROGRAMS[1] else ...)
    assert (tally.runs, tally.agreed, tally.void, tally.hung) == (2, 2, 1, hung)
    assert tally.reasons == {reason: 1}
    first, second = machine.children
    assert (first.killed, second.killed) == (True, False)
    assert (first.asked, second.asked) == (PROGRAMS[:2], PROGRAMS[2:])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ((None,), "the child died of SIGSEGV"),
        (({"event": "broken", "reason": "no CUDA device"},), "no CUDA device"),
        (({"event": "ready", "peers": False}, {"event": "broken", "reason": "out of memory"}), "out of memory"),
        ((TimeoutError,), "no answer within 120 s"),
    ],
)
def test_a_child_that_cannot_start_says_why(said: tuple[object, ...], reason: str) -> None:
    with pytest.raises(NothingRanError) as problem:
        begin(Machine(begin=said))
    assert str(problem.value) == reason


def test_closing_kills_the_child() -> None:
    machine = Machine()
    done = begin(machine)
    done.close()
    done.close()
    assert [child.killed for child in machine.children] == [True]


def test_a_line_on_the_way() -> None:
    tally = Tally(programs=12, runs=40, agreed=39, disagreed=1, violations=1, unsteady=2, void=3, seconds=4.0)
    assert progress_line(tally) == (
        "4 s: 12 programs, 40 runs (10/s), 97.50% as expected, 1 not (1 outside the model), 2 not repeatable, 3 void"
    )
    assert progress_line(Tally()).startswith("0 s: 0 programs, 0 runs (0/s), 0.00%")
