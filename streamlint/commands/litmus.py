"""``streamlint litmus``: options and work are those of ``streamlint.litmus.command``."""

from __future__ import annotations

from streamlint.commands.parser import Parser
from streamlint.litmus.command import add_arguments, run


def build_parser() -> Parser:
    """The parser of ``litmus``."""
    parser = Parser("litmus", "Run random CUDA programs on this machine's GPU, beside what the model says.")
    add_arguments(parser)
    return parser


def main(words: list[str]) -> int:
    """Hold the CUDA model against this machine's GPU."""
    return run(build_parser().read(words))
