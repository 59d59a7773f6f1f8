"""``streamlint verify``: options and work are those of ``streamlint.verify.command``."""

from __future__ import annotations

from streamlint.commands.parser import Parser


def main(words: list[str]) -> int:
    """Run templates on the GPU and compare with their predictions."""
    from streamlint.verify.command import add_arguments, run

    parser = Parser("verify", "Run the rules' templates on this machine's GPU and compare with what they predict.")
    add_arguments(parser)
    return run(parser.read(words))
