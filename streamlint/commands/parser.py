"""An argument parser that names the nearest option."""

from __future__ import annotations

import argparse
from typing import NoReturn

from streamlint.errors import did_you_mean


class Parser(argparse.ArgumentParser):
    """No abbreviations, options anywhere among the paths, one clear line for a mistake."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(prog=f"streamlint {name}", description=description, allow_abbrev=False)

    def read(self, words: list[str]) -> argparse.Namespace:
        """The options of a command line; exits with 2 if there is a mistake."""
        options, rest = self.parse_known_intermixed_args(words)
        if rest:
            known = [text for action in self._actions for text in action.option_strings]
            self.error(f"unknown option '{rest[0]}'{did_you_mean(rest[0].partition('=')[0], known)}")
        return options

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")
