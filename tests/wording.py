"""The style of messages, labels and helps: the problem first, in few words; its consequence after a semicolon; the remedy in the help.

And the shape of findings: what each has, and where it may stand.
"""

from __future__ import annotations

import re

from streamlint.findings import Finding

MOST_WORDS = 15
# Words that make a reader guess, with the field's terms for them.
AVOIDED = {
    r"at hand": "in scope, known",
    r"out of view": "unknown, external",
    r"in view": "known, analyzed",
    r"rounds?": "iteration",
    r"tells?|told": "report, show",
    r"for ever": "deadlock",
    r"stands?|stood": "block, stall, be",
    r"held shut|holds? up|held up": "block",
    r"handed|given out|g[io]ve[sn]? back|goes back": "pass, return, reuse",
    r"goes to": "run on",
    r"under the feet": "overwrite",
    r"behind": "after",
    r"beside": "concurrently, next to",
    r"meanwhile": "until",
    r"asks?|asked": "query, request",
    r"alone": "only",
    r"what|who|whoever|whatever|that which": "(the noun)",
    r"kin|twins?": "(the noun)",
    r"mends?|mended": "fix",
}
_AVOIDED = re.compile(rf"\b(?:{'|'.join(AVOIDED)})\b", re.IGNORECASE)
_REMEDY = re.compile(r"\b(?:use|instead|should|must|please)\b|\bcall \S+ before\b|^(?:pass|allocate|synchronize|copy \w+ before)\b")
# A first word in capitals is a name: of a library (`CuPy`, `PyTorch`), of a class (`DataLoader`) or of CUDA itself.
_FIRST_WORD = re.compile(r"[a-z_`]|[A-Z][a-z]*[A-Z]")


# A sentence may begin with an identifier or an acronym, as well: `cudaFree`, `H2D`, `torch.Tensor`.
_BEGINS = re.compile(r"[a-z`'\"(]|[A-Z][a-z]*[A-Z0-9_.:]|[A-Z]+\b")
_ADVICE = re.compile(r"^(?:use|pass|allocate|synchronize)\b|\b(?:instead|should|please)\b")
# Rules whose finding may stand without a trail, and why.
NO_TRAIL = {"SL002": "the argument that is missing is missing at the operation itself"}


def avoided(text: str) -> str:
    """The first word in a text that should not be there; empty if there is none."""
    found = _AVOIDED.search(text)
    return found[0] if found else ""


def faults(message: str) -> list[str]:
    """What is wrong with the wording of a message. What the code of a user fills in is a word."""
    wrong = []
    if len(message.split()) > MOST_WORDS:
        wrong.append(f"{len(message.split())} words")
    if not _FIRST_WORD.match(message) or message.endswith("."):
        wrong.append("begins in lower case, ends without a full stop")
    if ": " in message or message.count("; ") > 1:
        wrong.append("one consequence, after a semicolon")
    if _REMEDY.search(message):
        wrong.append("the remedy stands in the help")
    return wrong + ([f"avoid {avoided(message)!r}"] if avoided(message) else [])


def misworded(finding: Finding) -> dict[str, list[str]]:
    """The texts of a finding that are not in this style, with their faults."""
    texts = {finding.message: faults(finding.message)}
    for text in (finding.help, *(step.message for step in finding.trail)):
        texts[text] = texts.get(text, []) + ([f"avoid {avoided(text)!r}"] if avoided(text) else [])
    if not finding.help:
        texts[""] = ["a help says what to do"]
    return {text: wrong for text, wrong in texts.items() if wrong}


def misshapen(finding: Finding) -> list[str]:
    """What a finding lacks that each has, whatever its words are."""
    span, sentences = finding.span, (finding.message, finding.help, *(step.message for step in finding.trail))
    wrong = [f"no sentence of ours: {s!r}" for s in sentences if s != s.strip() or s.endswith(".") or not _BEGINS.match(s)]
    if _ADVICE.search(finding.message):
        wrong.append("the advice is in the message")
    if not finding.trail and finding.code not in NO_TRAIL:
        wrong.append("it has no trail")
    if span.row != span.end_row or span.column >= span.end_column:
        wrong.append("the primary place stands on one line, and is not empty")
    if any(step.span.row <= 0 or step.span.column <= 0 for step in finding.trail):
        wrong.append("a step stands nowhere")
    return wrong
