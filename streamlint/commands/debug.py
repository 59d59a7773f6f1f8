"""``streamlint debug``: shows what streamlint makes of code. A subcommand is a function of words that gives an exit code."""

from __future__ import annotations

import importlib
import sys

from streamlint.commands.parser import Parser
from streamlint.support.errors import did_you_mean

SUBCOMMANDS = {
    "callees": ("streamlint.commands.debug_facts", "callees", "print what the calls on a line may enter"),
    "callers": ("streamlint.commands.debug_facts", "callers", "print the calls that enter a function"),
    "effects": ("streamlint.commands.debug_effects", "main", "print what a function does to devices"),
    "facts": ("streamlint.commands.debug_facts", "main", "print what the values on a line may be, and why"),
    "hot": ("streamlint.commands.debug_hot", "main", "print whether and why a line runs in each training step"),
    "ir": ("streamlint.commands.debug_ir", "main", "print the control-flow graph of a file's functions"),
    "waits": ("streamlint.commands.debug_waits", "main", "print the host waits that hold up each round of training"),
}
"""By name: the module, its function, and a summary. A subcommand is registered by its row here."""
EXAMPLES = (
    ("streamlint debug ir model.py", "all functions of a file"),
    ("streamlint debug ir model.py:Model.forward", "one function"),
)
FAILED = 2


def build_parser() -> Parser:
    """The parser of ``debug``; the words behind the subcommand are read by the subcommand's own."""
    room = max(map(len, SUBCOMMANDS))
    rows = "\n".join(f"  {name:<{room}}  {summary}" for name, (_, _, summary) in SUBCOMMANDS.items())
    parser = Parser("debug", "Show what streamlint makes of the code. What is printed may change at any time.", EXAMPLES)
    parser.description = f"{parser.description}\n\nsubcommands:\n{rows}"
    parser.add_argument("subcommand", choices=tuple(SUBCOMMANDS), help="what to show; its own --help tells its options")
    parser.add_argument("arguments", nargs="*", metavar="FILE", help="what it is asked about")
    return parser


def main(words: list[str]) -> int:
    """Run a subcommand."""
    if not words or words[0] in ("--help", "-h"):
        parser = build_parser()
        parser.print_help(sys.stdout if words else sys.stderr)
        return 0 if words else FAILED
    if words[0] not in SUBCOMMANDS:
        kind = "option" if words[0].startswith("-") else "subcommand"
        build_parser().error(f"unknown {kind} '{words[0]}'{did_you_mean(words[0], SUBCOMMANDS)}")
    module, function, _ = SUBCOMMANDS[words[0]]
    code: int = getattr(importlib.import_module(module), function)(words[1:])
    return code
