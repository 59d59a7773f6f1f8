"""``streamlint litmus``: options and work are those of ``streamlint.litmus.command``."""

from __future__ import annotations

from streamlint.commands.parser import Parser


def main(words: list[str]) -> int:
    """Hold the CUDA model against this machine's GPU."""
    from streamlint.litmus.command import add_arguments, run

    parser = Parser("litmus", "Run random CUDA programs on this machine's GPU and compare with what the CUDA model says.")
    add_arguments(parser)
    return run(parser.read(words))
