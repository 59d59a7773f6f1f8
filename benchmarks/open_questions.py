"""Answer the open questions of the knowledge base by experiment, on one GPU.

    python benchmarks/open_questions.py                                 all of them, under 4 minutes
    python benchmarks/open_questions.py --only C E --output FILE        some, and their rows as JSON

A question runs in child processes of its own, each with a deadline: what hangs or crashes costs the rest of its part and no more. Needs
CuPy; A, B and a part of E need PyTorch, B also nvcc. Exits 1 if a number is missing, 2 if nothing can run.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from questions import MODULES, Part, Question, Row, told  # noqa: E402

SCHEMA = 1
DEADLINE_S = 90.0


def question(letter: str) -> Question:
    """The module that asks it."""
    return cast(Question, importlib.import_module(f"questions.{MODULES[letter]}"))


def answer(letter: str, device: Any, scratch: Path) -> dict[str, Any]:
    """Run all parts of a question and put its answer into a sentence."""
    begin, asked = time.monotonic(), question(letter)
    print(f"{letter}. {asked.QUESTION}", flush=True)
    rows = [row for part in asked.PARTS for row in _run(letter, part, device, scratch)]
    try:
        said = asked.answer([row for row in rows if "failure" not in row])
    except Exception as problem:  # the rows count, the sentence is a convenience
        said = f"no sentence: {told(problem)}"
    seconds = round(time.monotonic() - begin, 1)
    print(f"  => {said}\n  ({seconds} s)", flush=True)
    return {"question": asked.QUESTION, "rows": rows, "answer": said, "seconds": seconds}


def _run(letter: str, part: Part, device: Any, scratch: Path) -> list[Row]:
    from streamlint.verify.watchdog import Child

    command = [sys.executable, str(Path(__file__).resolve()), "--child", letter, "--part", part.name, "--scratch", str(scratch)]
    child = Child(command, device.environment(lazy=part.lazy))
    rows: list[Row] = []

    def keep(row: Row) -> None:
        rows.append({"part": part.name, **row})
        print(_line(rows[-1]), flush=True)

    end = time.monotonic() + DEADLINE_S
    try:
        while True:
            message = child.read(max(end - time.monotonic(), 0.0))
            if message is None:
                keep({"case": "-", "failure": child.epitaph()})
                break
            if message["event"] == "end":
                break
            keep(message["row"])
    except TimeoutError:
        keep({"case": "-", "failure": f"the child did not end within {DEADLINE_S:.0f} s and was killed"})
    finally:
        child.kill()
    return rows


def _line(row: Row) -> str:
    shown = ", ".join(f"{key} {value}" for key, value in row.items() if key not in ("part", "case"))
    return f"  [{row['part']}] {row['case']}: {shown}"


def _child(letter: str, part: str | None, scratch: Path) -> NoReturn:
    """Ask one part and say its rows; never returns: a context that hangs cannot be left in an orderly way."""
    from streamlint.verify.child import Answers, die_with_parent

    die_with_parent()
    answers = Answers()
    try:
        asked = question(letter)
        asked.ask(part or asked.PARTS[0].name, lambda row: answers.say("row", row=row), scratch)
    except BaseException as problem:
        answers.say("row", row={"case": "-", "failure": told(problem)})
    answers.say("end")
    sys.stderr.flush()
    os._exit(0)


def _fail(problem: str) -> int:
    print(f"open_questions: {problem}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="open_questions.py", description="Answer the open questions of the knowledge base, on one GPU.")
    letters = sorted(MODULES)
    parser.add_argument("--only", nargs="+", choices=letters, default=letters, metavar="LETTER", help="these questions: A to F")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the rows and answers as JSON")
    parser.add_argument("--child", choices=letters, help=argparse.SUPPRESS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()), help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    if options.child:
        _child(options.child, options.part, options.scratch)
    if importlib.util.find_spec("cupy") is None:
        return _fail("CuPy is not installed: pip install cupy-cuda13x (or cupy-cuda12x)")
    from streamlint.verify.device import Device
    from streamlint.verify.platforms import platform_facts

    device = Device()
    probed = device.probe()
    if "gpu" not in probed:
        return _fail(f"no GPU answers: {probed.get('reason', probed)}")
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "platform": platform_facts(probed),
        "date": datetime.date.today().isoformat(),
        "answers": {},
    }
    print(json.dumps(document["platform"]), flush=True)
    with tempfile.TemporaryDirectory(prefix="open-questions-", dir="/tmp", ignore_cleanup_errors=True) as scratch:
        for letter in options.only:
            document["answers"][letter] = answer(letter, device, Path(scratch))
            if options.output:  # after each: an interrupted run keeps what it has
                options.output.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(any("failure" in row or "void" in row for given in document["answers"].values() for row in given["rows"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
