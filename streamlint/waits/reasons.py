"""Why a wait is none that a rule reports, in the words of ``--explain-silence``."""

from __future__ import annotations

from streamlint.facts.code.objects import Site
from streamlint.ir import opcodes as op
from streamlint.waits.wait import Wait

NO_LOOP = "it stands in no loop that trains"
UNUSED = "nothing in the program names the function that runs it"
ON_HOST = "the program makes its own models, and no code of it puts anything on a device"
TRAINS_ON_HOST = "the modules of the loop are made on the host, and no code moves them to a GPU"
MEASURES = "the code around it tests or measures: waits are its purpose"
WARMS_UP = "its rounds warm up for a capture, which would refuse it"
NOT_ON_DEVICE = "nothing shows that the value is on the device: it comes from no loss, output, parameter or moved batch"
NOT_EXECUTED = "it is not met in each round: a condition, or a way out of the loop, stands before it"
STEPS_READ = "each step of the loop evaluates its closure many times, and reads each time"
NEEDED, BY_ANY = "the round needs the value", "a decision, a message or a result depends on it"
EVALUATES = "its rounds evaluate: they compare what a model gives with more of their data"
DIFFERS = "what is uploaded differs from round to round"
_PASSES = "passes it on"
_TAKES = {
    op.BRANCH: "decides by it",
    op.COMPARE: "compares it",
    op.RETURN: "returns it",
    op.CALL: _PASSES,
    op.INVOKE: _PASSES,
    op.FORMAT: "shows it",
}


def needed(wait: Wait, taker: Site | None = None) -> str:
    """That the round needs the value of a wait, and what needs it, where that is known."""
    by = BY_ANY if taker is None else f"{row_of(taker, wait)} {_TAKES.get(taker.instruction[0], 'takes it')}"
    return f"{NEEDED}: {by}"


def row_of(other: Wait | Site, asking: Wait) -> str:
    """Where something else stands, seen from a wait."""
    row = other.function.code.at(other.instruction[1])[0]
    path = other.function.unit.path
    return f"line {row}" if path == asking.function.unit.path else f"{path}:{row}"
