"""The process that touches the GPU: reads programs as JSON lines from standard input, answers what each run showed.

``{"do": "run", "program": TEXT, "expected": [...]}`` → ``{"event": "seen", "words": [...], "problem": …}``. A run whose threads do not
come back is answered with ``hung`` and ends the process: what waits in the driver cannot be joined.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from streamlint.litmus.bench import Bench
from streamlint.litmus.generate import warm_up
from streamlint.litmus.program import parse
from streamlint.verify.child import Answers, die_with_parent, probe


def serve(answers: Answers) -> None:
    """Answer requests until the input ends."""
    bench = Bench()
    answers.say("ready", peers=bench.device.peer is not None, **probe())
    bench.warm(warm_up(peers=bench.device.peer is not None))
    answers.say("warm")
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        seen = bench.run(parse(request["program"]), frozenset(request["expected"]))
        answers.say("seen", words=sorted(seen.words), problem=seen.problem, hung=seen.hung)
        if seen.hung:
            return


def main() -> int:
    die_with_parent()
    answers = Answers()
    try:
        serve(answers)
    except Exception as problem:
        traceback.print_exc()
        answers.say("broken", reason=f"{type(problem).__name__}: {problem}")
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # no destructors: a CUDA context that hangs cannot be joined
