"""What ends a run with exit code 2.

StreamlintError
├── ConfigError   a configuration file or an option says what cannot be
└── PathError     a path that was asked for is not there
"""

from __future__ import annotations

from collections.abc import Iterable


class StreamlintError(Exception):
    """The linter could not do its work; the message says why, and stands alone on stderr."""


class ConfigError(StreamlintError):
    """A configuration file, or an option that stands for one of its keys, is wrong."""

    keys: tuple[str | int, ...] = ()  # the key of the configuration, and the row of its list, that the error concerns


class PathError(StreamlintError):
    """A path that was asked for does not exist."""


def not_installed(what: str, package: str, error: ImportError) -> StreamlintError:
    """That something needs a package that is not installed, or that does not work here."""
    if isinstance(error, ModuleNotFoundError):
        return StreamlintError(f"{what} needs {package}, which is not installed: pip install {package}")
    return StreamlintError(f"{what} needs {package}, which does not work here: {error}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the nearest known word, or nothing."""
    import difflib  # start-up: for mistakes alone

    undashed = {name.lstrip("-"): name for name in known}  # dashes in front make any two options alike
    close = difflib.get_close_matches(word.lstrip("-"), list(undashed), n=1, cutoff=0.6)
    return f"; did you mean '{undashed[close[0]]}'?" if close else ""
