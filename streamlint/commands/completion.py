"""``streamlint generate-shell-completion``: a script that a shell reads."""

from __future__ import annotations

import argparse
import importlib

from streamlint.cli import COMMANDS
from streamlint.commands.parser import Parser
from streamlint.support.errors import not_installed

SHELLS = ("bash", "zsh", "tcsh", "fish", "powershell")


def build_parser() -> Parser:
    """The parser of ``generate-shell-completion``."""
    parser = Parser(
        "generate-shell-completion",
        "Print a script that completes commands and options.",
        examples=(
            ('eval "$(streamlint generate-shell-completion bash)"', "for this bash"),
            ("streamlint generate-shell-completion zsh > ~/.zfunc/_streamlint", "for zsh, once"),
            ("streamlint generate-shell-completion fish | source", "for this fish"),
            ("streamlint generate-shell-completion powershell | Out-String | iex", "for this PowerShell"),
        ),
    )
    parser.add_argument("shell", choices=SHELLS, help="which shell")
    return parser


def main(words: list[str]) -> int:
    """Print the script of a shell."""
    options = build_parser().read(words)
    try:
        import shtab  # start-up: for this command
    except ImportError as error:
        raise not_installed("generate-shell-completion", "shtab", error) from None
    print(shtab.complete(_whole(), shell=options.shell))
    return 0


def _whole() -> argparse.ArgumentParser:
    """One parser for all commands."""
    import shtab  # start-up: for this command

    parser = argparse.ArgumentParser(prog="streamlint")
    commands = parser.add_subparsers()
    for name, (module, summary) in COMMANDS.items():
        own = importlib.import_module(module).build_parser()
        for action in own._actions:
            if any(word in str(action.metavar) for word in ("FILE", "FOLDER", "PATH")):
                action.complete = shtab.FILE
        commands.add_parser(name, parents=[own], add_help=False, help=summary)
    return parser
