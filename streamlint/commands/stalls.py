"""Why the stalls of a recorded run have no finding, in the words of ``--explain-silence``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from streamlint.config.settings import Resolver
from streamlint.silence import Answer, Reason, explain_each
from streamlint.silence.words import UNKNOWN_BODY
from streamlint.support.errors import StreamlintError
from streamlint.trace.kinds import ALLOCATE, FREE
from streamlint.trace.names import Names
from streamlint.trace.prices import price
from streamlint.trace.rendering.words import size
from streamlint.trace.results import Cost, Joined, Unnamed

NO_LINE, OUTSIDE, NOT_ASKED = "no line", "outside", "not looked up"
NO_RULE, RULE_OFF, NO_MODEL, NO_MEMORY, OTHER = "no rule", "rule is off", "unmodelled call", "unknown memory", "other finding"
OTHER_RANK, NO_WAIT, LET_PASS, ONCE, GROWTH = "other rank", "no wait", "let pass", "ran once", "growth"
MOST_LINES = 3  # that are asked about, of a place that may be one of several
# Kinds of reasons, the one that says most of a stall first.
_ORDER = ("found", "hidden", "place", "given-way", "round", "memory", "facts", "loop", "order", "cut", "unread", "unreached", "nothing")
_KINDS = {
    "found": OTHER,
    "place": OTHER,
    "given-way": OTHER,
    "hidden": RULE_OFF,
    "round": LET_PASS,
    "memory": NO_MEMORY,
    "facts": LET_PASS,
    "loop": "no loop",
    "order": NO_RULE,
    "cut": "not analysed",
    "unread": OUTSIDE,
    "unreached": "not analysed",
    "nothing": NO_RULE,
}


def give_reasons(joined: Joined, names: Names, paths: Sequence[str], resolver: Resolver, top: int) -> None:
    """Give the dearest stalls their reasons. Each costs time: of the others it is said that nobody looked."""
    questions: list[tuple[Unnamed, int]] = []
    growing = _growing(joined)
    for number, one in enumerate(joined.unnamed):
        if (known := _seen(one, names, growing)) is not None:
            one.kind, one.reason = known
        elif number >= top:
            one.kind, one.reason = NOT_ASKED, f"not looked up: --top {len(joined.unnamed)} asks for all reasons"
        else:
            questions += [(one, line) for line in one.cost.place.lines[:MOST_LINES]]
    if not questions:
        return
    try:
        answers = explain_each(paths, [f"{one.cost.place.file}:{line}" for one, line in questions], resolver)
    except StreamlintError as error:  # the file was changed after the recording, and is shorter now
        for one, _ in questions:
            one.kind, one.reason = NOT_ASKED, f"the reason is not known: {error}"
        return
    for (one, _), answer in zip(questions, answers, strict=True):
        kind, reason = reason_of(answer)
        if not one.reason or one.kind == NO_RULE:  # of several lines, the first that says more than that no rule speaks of it
            one.kind, one.reason = kind, reason + (_of_upload(one.cost) if kind == LET_PASS else "")


def _of_upload(cost: Cost) -> str:
    """What a recording adds to the reason of uploads that the host waits for: from which memory they are, and how fast."""
    if not (cost.source == "pageable" and cost.destination == "device" and cost.bandwidth):
        return ""
    return (
        f"; it uploads pageable memory, at {size(cost.bandwidth)}/s: behind an asynchronous copy of pinned memory the host goes on at once"
    )


def _growing(joined: Joined) -> dict[int, str]:
    """The processes that asked the driver for memory more than twice as often as they returned it, and how often."""
    requested: Counter[int] = Counter()
    returned: Counter[int] = Counter()
    for cost in joined.costs.costs:
        requested[cost.process] += cost.driver_allocations if cost.kind == ALLOCATE else 0
        returned[cost.process] += cost.calls if cost.kind == FREE else 0
    often = {one: times for one, times in requested.items() if times > 2 * returned[one]}
    return {one: f"{times} times in this run, and memory was returned {returned[one]} times" for one, times in often.items()}


def _seen(one: Unnamed, names: Names, growing: Mapping[int, str]) -> tuple[str, str] | None:
    """The kind of a reason that the recording shows, and its words; None where the code has to be asked. ``growing`` says of processes
    how often they asked the driver for memory."""
    cost = one.cost
    if not cost.place.file or not cost.place.lines:
        return NO_LINE, "the recording has no line of your code for these calls"
    if not names.is_linted(cost.place.file):
        return OUTSIDE, "the file is not among the linted ones"
    if cost.other_ranks > price(cost):
        return OTHER_RANK, "another rank came later to a collective: see what that rank does before it"
    if one.is_direct:
        ways = f"of {cost.source} to {cost.destination} memory"
        return NO_WAIT, f"an asynchronous copy {ways} waits for nothing: its time is that of the calls themselves"
    if cost.kind == ALLOCATE and 2 * cost.driver_allocations > cost.calls and cost.process in growing:
        return GROWTH, f"an allocator asks the driver for memory, {growing[cost.process]}: it grows until it has enough"
    if cost.stretches == 1:
        calls = f"its {cost.calls} calls came one behind the other, with no work in between" if cost.calls > 1 else "it was called once"
        return ONCE, f"{calls}: no round repeats the line in this run"
    return None


def reason_of(answer: Answer) -> tuple[str, str]:
    """The kind of the reason that says most, and its words."""
    facts = [reason.message for reason in answer.reasons if reason.kind == "fact"]
    best = min((reason for reason in answer.reasons if reason.kind in _ORDER), key=lambda one: _ORDER.index(one.kind), default=None)
    unmodelled = _unmodelled(facts, best, answer.row)
    if best is None or unmodelled:
        return NO_MODEL, unmodelled
    if best.kind == "hidden" and not best.message.startswith(("the rule is", "`", "a per-file ignore")):
        return "suppressed", best.tagged
    if best.kind in ("nothing", "order"):
        return NO_RULE, f"{facts[0] if facts else best.message}: no rule reports that it waits here"
    return _KINDS[best.kind], best.tagged


def _unmodelled(facts: Sequence[str], best: Reason | None, row: int) -> str:
    """What no model knows of a line; empty where there is a better reason."""
    lost = next((message for message in facts if UNKNOWN_BODY in message), "")
    if lost and (best is None or best.kind in ("nothing", "order")):
        return f"{lost}: no model says what it does"
    if best is None or (best.kind == "nothing" and not facts):
        return f"streamlint sees no CUDA operation in line {row}, and the run does"
    return ""
