"""An argument parser that names the nearest option."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from streamlint import TYPE_CHECKING
from streamlint.report.terminal import line
from streamlint.support.errors import did_you_mean

if TYPE_CHECKING:
    from typing import NoReturn


# Options that other linters have, and what is the same here.
ELSEWHERE = {
    **dict.fromkeys(("--list-rules", "--rules", "--show-rules", "--all-rules"), "; 'streamlint rules' lists the rules"),
    **dict.fromkeys(("--explain", "--explain-rule"), "; 'streamlint rule CODE' prints the page of a rule"),
    **dict.fromkeys(("--format", "--output", "--reporter"), "; did you mean '--output-format'?"),
}


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal; argparse imports all compressors of Python to learn how wide that is."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


class Parser(argparse.ArgumentParser):
    """No abbreviations, options anywhere among the paths, one clear line for a mistake."""

    def __init__(self, name: str, description: str, examples: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(
            prog=f"streamlint {name}",
            description=description if len(description) <= 78 else _filled(description),
            epilog=_listed(examples),
            allow_abbrev=False,
            formatter_class=_Formatter,
        )

    def read(self, words: list[str]) -> argparse.Namespace:
        """The options of a command line; exits with 2 if there is a mistake."""
        if not {"-h", "--help"}.intersection(words):
            self.usage = "%(prog)s"  # nobody sees it, and argparse writes it out each time otherwise
        options, rest = self.parse_known_intermixed_args(words)
        if rest:
            known = [text for action in self._actions for text in action.option_strings]
            word = rest[0].partition("=")[0]
            hint = "" if word in known else ELSEWHERE.get(word, "")
            self.error(f"unknown option '{rest[0]}'{hint or did_you_mean(word, known)}")
        return options

    def error(self, message: str) -> NoReturn:
        self.exit(2, line(f"{self.prog}: {message}") + "\n")


def _columns() -> int:
    try:
        if (said := int(os.environ.get("COLUMNS", ""))) > 0:
            return said
    except ValueError:
        pass
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


def _filled(text: str) -> str:
    import textwrap  # start-up: for help alone

    return textwrap.fill(text, 78)


def _listed(examples: Sequence[tuple[str, str]]) -> str | None:
    """Command lines and what they do, in two columns where both fit into 80."""
    if not examples:
        return None
    room = max(len(command) for command, _ in examples)
    wide = any(room + len(tells) > 76 for _, tells in examples)
    rows = [f"  {command}\n      {tells}" if wide else f"  {command:<{room}}  {tells}" for command, tells in examples]
    return "examples:\n" + "\n".join(rows)
