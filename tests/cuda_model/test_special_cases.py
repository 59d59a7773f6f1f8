"""The special cases document, line by line, and what holds of every program: no GPU, the model alone.

A section of ``special_cases.md`` has a ``##`` title and fenced blocks of ``litmus``, each with a line ``expected: OUTCOME`` below it.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from streamlint.cuda_model import EFFECTS, FACTS, Strength
from streamlint.litmus import generate
from streamlint.litmus.predict import Outcome, allowed, leaves_a_mark, observed, strengths
from streamlint.litmus.program import CAPTURES, Call, Program, outcome_text, parse

DOCUMENT = Path(__file__).with_name("special_cases.md")
TRUTH = strengths()
PROMISED = {name: fact.strength if fact.strength is Strength.GUARANTEED else Strength.NEVER for name, fact in FACTS.items()}

_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_CASE = re.compile(r"^```litmus\n(?P<program>.*?)^```\nexpected: (?P<expected>[^\n]+)$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Case:
    id: str
    program: Program
    expected: str


def read(text: str) -> Iterator[Case]:
    """The programs of a document with what is expected of them."""
    heads = list(_SECTION.finditer(text))
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=True):
        for number, case in enumerate(_CASE.finditer(text, head.end(), end), 1):
            yield Case(f"{head['title']}, {number}" if number > 1 else head["title"], parse(case["program"]), case["expected"])


CASES = list(read(DOCUMENT.read_text(encoding="utf-8")))
ONE_BY_ONE = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


def random_programs(count: int, seed: int, *, peers: bool = False) -> list[Program]:
    """Random programs, once with each gate that they can have."""
    drawn = itertools.islice(generate.programs(seed, peers=generate.PEERS if peers else 0.0), count)
    return [program.gated(gate, program.kind) for program in drawn for gate in program.gates()]


RANDOM = [*random_programs(200, 11), *random_programs(100, 12, peers=True)]
UNCAPTURED = [program for program in RANDOM if not any(call.captures for call in program.calls)]


@ONE_BY_ONE
def test_special_case(case: Case) -> None:
    assert outcome_text(observed(case.program, TRUTH)) == case.expected


@ONE_BY_ONE
def test_what_is_expected_is_allowed(case: Case) -> None:
    listed = allowed(case.program, TRUTH)
    assert listed is not None
    assert observed(case.program, TRUTH) in listed
    assert observed(case.program, PROMISED) in listed


def test_each_block_of_the_document_is_read() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert len(CASES) == text.count("```litmus\n") == text.count("\nexpected: ") == text.count("\n```\n")
    assert not [name for name, count in Counter(case.id for case in CASES).items() if count > 1]
    assert not [program for program, count in Counter(str(case.program) for case in CASES).items() if count > 1]


def test_the_document_shows_every_call() -> None:
    assert {call.call for case in CASES for call in case.program.calls} == {*EFFECTS, *CAPTURES}


@pytest.mark.parametrize("fact", FACTS)
def test_a_case_rests_on_every_fact(fact: str) -> None:
    turned = strengths(fact)
    assert any(observed(case.program, turned) != observed(case.program, TRUTH) for case in CASES)


def test_the_document_knows_outcomes_of_all_kinds() -> None:
    words = {word for case in CASES for word in case.expected.split()}
    assert {word[0] for word in words - {"nothing"}} == set("hdrx")
    assert {word.partition(":")[2] for word in words if word[0] == "x"} == {
        *("1", "400", "401", "900", "901", "902", "903", "904", "905", "906", "907", "908")
    }


# What holds of every program --------------------------------------------------------------------------------------------------


@functools.cache
def possible(program: Program) -> set[Outcome] | None:
    """What is allowed; ``None`` where that is too much to list."""
    return allowed(program, TRUTH)


def every_outcome(program: Program) -> set[Outcome]:
    """What is expected, what is promised, and all between them where that can be listed."""
    return {observed(program, TRUTH), observed(program, PROMISED)} | (possible(program) or set())


def test_of_random_programs_what_is_expected_is_allowed() -> None:
    listed = {program: outcomes for program in RANDOM if (outcomes := possible(program)) is not None}
    assert len(listed) > 0.95 * len(RANDOM), "nearly all can be listed"
    for program, outcomes in listed.items():
        assert observed(program, TRUTH) in outcomes, program
        assert observed(program, PROMISED) in outcomes, program


def test_nothing_behind_the_gate_on_its_own_stream_ever_ends() -> None:
    behind = 0
    for program in UNCAPTURED:
        stream = program.calls[program.gate].clock
        held = {f"d{number}" for number, call in enumerate(program.calls) if number >= program.gate and call.clock == stream}
        behind += len(held)
        for outcome in every_outcome(program):
            assert not outcome & held, program
    assert behind > 1000


def test_nobody_comes_back_from_synchronizing_the_gated_stream() -> None:
    waits = 0
    for program in UNCAPTURED:
        gated = program.calls[program.gate]
        held = {f"h{number}" for number, call in enumerate(program.calls) if number > program.gate and synchronizes(call, gated)}
        waits += len(held)
        for outcome in every_outcome(program):
            assert not outcome & held, program
    assert waits > 40


def synchronizes(call: Call, gated: Call) -> bool:
    """Whether a call waits for the gate by what its name says."""
    return call.clock == gated.clock if call.call == "streamSynchronize" else call.call == "deviceSynchronize" and not gated.device


def test_a_thread_that_does_not_return_issues_no_more() -> None:
    for program in RANDOM:
        for outcome in every_outcome(program):
            for thread in {call.thread for call in program.calls}:
                numbers = [number for number, call in enumerate(program.calls) if call.thread == thread]
                returned = [f"h{number}" in outcome for number in numbers]
                assert returned == sorted(returned, reverse=True), "once it is held it stays so"
                after = numbers[returned.count(True) + 1 :]
                assert not [word for word in outcome if int(word[1:].partition(":")[0]) in after], program


def test_words_are_of_calls_that_can_have_them() -> None:
    for program in RANDOM:
        for outcome in every_outcome(program):
            for word in outcome:
                call = program.calls[int(word[1:].partition(":")[0])]
                assert word[0] in "hx" or leaves_a_mark(call) or (word[0] == "r" and call.call in ("streamQuery", "eventQuery")), program


def test_work_before_the_gate_ends() -> None:
    """What was issued before the gate, by whatever thread, is over before it shuts."""
    for program in UNCAPTURED:
        over = {f"h{number}" for number in range(program.gate)}
        over |= {f"d{number}" for number in range(program.gate) if leaves_a_mark(program.calls[number])}
        for outcome in every_outcome(program):
            assert over <= outcome, program
