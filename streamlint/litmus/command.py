"""``streamlint litmus``: random programs against the CUDA model.

Exit codes: 0 the GPU did what the model says, 1 it did not (a repeatable disagreement), 2 nothing could run. ``--self-test`` turns facts of
the model round, one after the other, and each must be caught: 0 if all are, else 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from streamlint.cuda_model import FACTS
from streamlint.litmus import recorded, report
from streamlint.litmus.generate import PEERS
from streamlint.litmus.predict import strengths
from streamlint.litmus.program import LitmusError, Program, outcome_text, parse
from streamlint.litmus.session import NothingRanError, Session, Speaker, Tally, progress_line
from streamlint.support.errors import StreamlintError, did_you_mean
from streamlint.support.writing import write_output
from streamlint.verify.device import Device
from streamlint.verify.options import INSTALL
from streamlint.verify.platforms import platform_facts
from streamlint.verify.watchdog import Child, program

FORMATS = ("full", "json")
SELF_TEST_S = 60.0  # within which a fact that was turned round must be caught
# Facts that rest on different parts of the model: order, barrier, events, copies, frees, locks.
TURNED = (
    "blocking-waits-for-null",
    "null-barrier-holds-nonblocking",
    "event-order",
    "record-on-blocking-waits-for-null",
    "null-synchronize-waits-for-blocking",
    "d2h-pageable-async-waits",
    "h2d-pageable-big-async-waits",
    "free-waits",
    "pageable-copy-on-null-holds-all",
    "free-holds-all",
)
Spawn = Callable[[], Speaker]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``streamlint litmus``."""
    parser.add_argument("--seconds", type=float, default=60.0, metavar="N", help="how long to run random programs; default: 60")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the same seed gives the same programs; default: 1")
    parser.add_argument("--replay", metavar="FILE", help="run the programs of a file, or of an earlier run's JSON, instead of random ones")
    parser.add_argument("--pairs", action="store_true", help="every call beside every call that may wait, instead of random programs")
    parser.add_argument("--output-format", choices=FORMATS, default="full", help="default: full")
    parser.add_argument("--output-file", "-o", metavar="FILE", help="write the report there instead of to standard output")
    parser.add_argument("--save", metavar="FILE", help="write the minimal programs of all disagreements there, as text for --replay")
    parser.add_argument("--record", metavar="FILE", help="write every run there, program and outcome, a JSON object a line")
    parser.add_argument("--recorded", metavar="FILE", help="hold runs that --record wrote against the model; needs no GPU")
    parser.add_argument("--self-test", action="store_true", help="turn facts of the model round: each must be caught within a minute")
    parser.add_argument("--turn", action="append", default=[], metavar="FACT", help="with --self-test: this fact only; repeatable")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="which of the visible GPUs; default: 0")
    parser.add_argument("--only-peers", action="store_true", help="random programs on two GPUs only; needs a second GPU")
    parser.add_argument("--no-peers", action="store_true", help="leave a second GPU alone: no copies between devices")


def run(options: argparse.Namespace, spawn: Spawn | None = None) -> int:
    """Fuzz, replay or self-test, and report; returns the exit code."""
    programs = read_programs(options.replay) if options.replay else None
    for fact in options.turn:
        if fact not in FACTS:
            raise StreamlintError(f"there is no fact '{fact}'{did_you_mean(fact, FACTS)}")
    if options.only_peers and options.no_peers:
        raise StreamlintError("--only-peers and --no-peers exclude each other")
    if options.turn and not options.self_test:
        raise StreamlintError("--turn says which facts --self-test turns round; it needs --self-test")
    if options.recorded:
        return _recorded(options)
    if spawn is None:
        if importlib.util.find_spec("cupy") is None:
            return _fail(f"litmus needs CuPy, which is not installed; {INSTALL}")
        spawn = _spawner(options)
    try:
        if options.self_test:
            return _self_test(options, spawn)
        return _compare(options, spawn, programs)
    except NothingRanError as problem:
        return _fail(f"litmus needs an NVIDIA GPU that CuPy can use ({problem})")


def _compare(options: argparse.Namespace, spawn: Spawn, programs: Sequence[Program] | None) -> int:
    session = Session(spawn, strengths(), _say)
    book = open(options.record, "w", encoding="utf-8") if options.record else None  # noqa: SIM115 - closed below
    if book is not None:
        session.record = lambda program, seen: print(json.dumps([str(program), outcome_text(seen)]), file=book)
    try:
        tally = _tally(session, options, programs)
    except KeyboardInterrupt:
        tally = session.tally
    except NothingRanError as problem:  # a child could not be restarted: what was found until then is kept
        if not session.tally.runs:
            raise
        tally = session.tally
        _say(f"stopped: {problem}")
    finally:
        session.close()
        if book is not None:
            book.close()
    _say(progress_line(tally))
    seed = None if options.pairs or programs is not None else options.seed
    document = report.document(tally, _facts(tally, options), seed)
    _write(document, report.text, options)
    if options.save:
        write_output(options.save, report.programs_text(tally))
    if not tally.runs:
        return _fail("no run had an outcome")
    return int(bool(tally.disagreed or tally.hung))


def _tally(session: Session, options: argparse.Namespace, programs: Sequence[Program] | None) -> Tally:
    """What a session counts of the programs of a file, of all pairs, or of random programs."""
    session.start()
    if options.only_peers and not session.tally.platform.get("peers"):
        raise NothingRanError("--only-peers: there is no second one that it reaches")
    if programs is not None:
        return session.replay(programs)
    if options.pairs:
        return session.pairs()
    session.show_facts()
    return session.fuzz(options.seed, options.seconds, peers=1.0 if options.only_peers else PEERS)


def _self_test(options: argparse.Namespace, spawn: Spawn) -> int:
    results: list[dict[str, Any]] = []
    facts: dict[str, Any] = {}
    session = Session(spawn, strengths())
    try:
        session.start()
        for fact in options.turn or TURNED:
            session.restart(strengths(fact))
            tally = session.fuzz(options.seed, min(options.seconds, SELF_TEST_S), enough=lambda tally: tally.disagreed > 0)
            facts = facts or _facts(tally, options)
            caught = bool(tally.disagreements)
            results.append(report.turned(fact, tally))
            _say(f"{fact}: {'caught' if caught else 'NOT caught'} after {tally.seconds:.1f} s, {tally.runs} runs")
    finally:
        session.close()
    document = {"schema": report.SCHEMA, "platform": facts, "self_test": results}
    _write(document, report.self_test_text, options)
    return int(not all(result["caught"] for result in results))


def _recorded(options: argparse.Namespace) -> int:
    runs = recorded.read(options.recorded)
    if options.self_test:
        rows = recorded.turned(runs, options.turn or list(FACTS))
        document: dict[str, Any] = {"schema": report.SCHEMA, "runs": len(runs), "self_test": rows}
        full = report.turned_text
        wrong = not all(row["caught"] for row in rows)
    else:
        found = list(recorded.contradictions(runs, strengths()))
        document = report.recorded_document(len(runs), found)
        full = report.recorded_text
        wrong = bool(found)
    _write(document, full, options)
    return int(wrong)


def read_programs(path: str) -> list[Program]:
    """Programs of a text (blank lines between them) or of a JSON report."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise StreamlintError(f"cannot read {path}: {problem}") from None
    if text.lstrip().startswith("{"):
        try:
            texts = [entry["program"] for entry in json.loads(text)["disagreements"]]
        except (ValueError, KeyError, TypeError):
            raise StreamlintError(f"{path} is no report of 'streamlint litmus --output-format json'") from None
    else:
        return list(_parsed(path, text))
    return [parse(part) for part in texts]


def _parsed(path: str, text: str) -> Iterator[Program]:
    """The programs of a text; an error names the file, and the line in it."""
    first = 1
    for part in text.split("\n\n"):
        if any(line.strip() and not line.startswith("#") for line in part.splitlines()):
            try:
                yield parse(part, first)
            except LitmusError as problem:
                raise LitmusError(f"{path}: {problem}") from None
        first += part.count("\n") + 2


def _spawner(options: argparse.Namespace) -> Spawn:
    # A device that is not there is ignored by CUDA, and so are the ones behind it.
    beside = () if options.no_peers else (options.device + 1,)
    environment = Device(options.device).environment(lazy=True, beside=beside)
    return lambda: Child(program("streamlint.litmus.child"), environment, listens=True)


def _facts(tally: Tally, options: argparse.Namespace) -> dict[str, Any]:
    return platform_facts(tally.platform, options.device)


def _write(document: dict[str, Any], full: Callable[[dict[str, Any]], str], options: argparse.Namespace) -> None:
    text = full(document) if options.output_format == "full" else json.dumps(document, indent=1, ensure_ascii=False)
    if options.output_file:
        write_output(options.output_file, text + "\n")
    else:
        print(text)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _fail(message: str) -> int:
    print(f"streamlint: {message}", file=sys.stderr)
    return 2
