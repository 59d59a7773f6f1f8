"""What a session found, for people and as JSON."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from streamlint.litmus.predict import Outcome, outside, strengths
from streamlint.litmus.program import Program, outcome_text
from streamlint.litmus.session import Disagreement, Tally
from streamlint.verify.evidence import platform_name

SCHEMA = 1


def document(tally: Tally, facts: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """The JSON of a run. ``seed`` is ``None`` for a replay."""
    return {
        "schema": SCHEMA,
        "platform": dict(facts),
        "date": datetime.date.today().isoformat(),
        "peers": bool(tally.platform.get("peers")),
        "seed": seed,
        "seconds": round(tally.seconds, 1),
        "programs": tally.programs,
        "runs": tally.runs,
        "agreed": tally.agreed,
        "agreement": round(tally.agreement, 6),
        "disagreed": tally.disagreed,
        "violations": tally.violations,
        "not_repeatable": tally.unsteady,
        "void": tally.void,
        "hung": tally.hung,
        "void_reasons": dict(tally.reasons),
        "facts": dict(tally.facts),
        "disagreements": [_entry(entry) for entry in sorted(tally.disagreements, key=lambda entry: -entry.times)],
        "not_repeatable_programs": [_entry(entry) for entry in tally.unsteady_programs[:20]],
    }


def _entry(entry: Disagreement) -> dict[str, Any]:
    return {
        "program": str(entry.program),
        "expected": outcome_text(entry.expected),
        "seen": outcome_text(entry.seen),
        "violation": entry.violation,
        "times": entry.times,
    }


def turned(fact: str, tally: Tally) -> dict[str, Any]:
    """One row of the self-test."""
    row: dict[str, Any] = {"fact": fact, "caught": bool(tally.disagreements), "seconds": round(tally.seconds, 1), "runs": tally.runs}
    if tally.disagreements:
        row["by"] = _entry(tally.disagreements[0])
    return row


def text(report: Mapping[str, Any]) -> str:
    """The report for people."""
    lines = [
        platform_name(report["platform"]) + (", two devices" if report["peers"] else ""),
        "",
        f"{report['programs']} programs, {report['runs']} runs in {report['seconds']:.0f} s",
        f"{report['agreed']} as expected ({report['agreement']:.2%}); {report['disagreed']} otherwise, of them "
        f"{report['violations']} outside of what the model allows; {report['not_repeatable']} not repeatable",
    ]
    if report["void"]:
        lines.append(f"{report['void']} without an outcome:")
        lines += [f"  {times} x {reason}" for reason, times in sorted(report["void_reasons"].items(), key=lambda item: -item[1])]
    for entry in report["disagreements"]:
        word = "OUTSIDE THE MODEL" if entry["violation"] else "not as expected"
        lines += ["", f"{word}, {entry['times']} x", *(f"    {line}" for line in entry["program"].splitlines())]
        lines += [f"  expected  {entry['expected']}", f"  seen      {entry['seen']}"]
    if report["disagreements"]:
        lines += ["", "hN: call N returned; dN: its work on the device ended; rN: query N said ready; xN:S: refused with status S"]
    return "\n".join(lines)


def self_test_text(report: Mapping[str, Any]) -> str:
    """The self-test for people."""
    lines = [platform_name(report["platform"]), ""]
    for row in report["self_test"]:
        word = "caught" if row["caught"] else "NOT CAUGHT"
        lines.append(f"{word:<10}  {row['seconds']:5.1f} s  {row['runs']:5} runs  {row['fact']}")
    return "\n".join(lines)


def recorded_document(runs: int, found: Sequence[tuple[int, Program, Outcome, Outcome]]) -> dict[str, Any]:
    """The JSON of recorded runs held against the model."""
    return {
        "schema": SCHEMA,
        "runs": runs,
        "agreed": runs - len(found),
        "agreement": round(1 - len(found) / runs, 6) if runs else 0.0,
        "disagreements": [
            {
                "run": number,
                "program": str(program),
                "expected": outcome_text(expected),
                "seen": outcome_text(seen),
                "violation": outside(program, seen, strengths()),
            }
            for number, program, expected, seen in found
        ],
    }


def recorded_text(report: Mapping[str, Any]) -> str:
    """Recorded runs held against the model, for people."""
    lines = [f"{report['runs']} recorded runs, {report['agreed']} as expected ({report['agreement']:.3%})"]
    for entry in report["disagreements"]:
        word = ", outside of the model" if entry["violation"] else ""
        lines += ["", f"run {entry['run']}{word}", *(f"    {line}" for line in entry["program"].splitlines())]
        lines += [f"  expected  {entry['expected']}", f"  seen      {entry['seen']}"]
    return "\n".join(lines)


def turned_text(report: Mapping[str, Any]) -> str:
    """The self-test on recorded runs, for people."""
    lines = [f"{report['runs']} recorded runs", ""]
    for row in report["self_test"]:
        word = "caught" if row["caught"] else "NOT CAUGHT"
        lines.append(f"{word:<10}  {row['runs']:6} runs  {row['fact']}")
    return "\n".join(lines)


def programs_text(tally: Tally) -> str:
    """The minimal programs as a text that ``--replay`` reads."""
    parts = []
    for entry in tally.disagreements:
        parts.append(f"# expected {outcome_text(entry.expected)}\n# seen     {outcome_text(entry.seen)}\n{entry.program}\n")
    return "\n".join(parts)
