"""``streamlint verify``: options and work are those of ``streamlint.verify.command``."""

from __future__ import annotations

from streamlint.commands.parser import Parser


def build_parser() -> Parser:
    """The parser of ``verify``."""
    from streamlint.verify.command import add_arguments

    parser = Parser("verify", "Run the rules' templates on this machine's GPU and compare with what they predict.")
    add_arguments(parser)
    return parser


def main(words: list[str]) -> int:
    """Run templates on the GPU and compare with their predictions."""
    from streamlint.verify.command import run

    return run(build_parser().read(words))
