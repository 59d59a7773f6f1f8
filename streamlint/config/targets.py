"""Where reports go: ``--output-format FORMAT`` on standard output, ``FORMAT:FILE`` into a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamlint.support.errors import ConfigError, did_you_mean


def read_targets(requested: Iterable[str], known: Sequence[str], file: str | None) -> list[tuple[str, str | None]]:
    """Formats, and the file that each is written to (None: standard output); ``file`` is that of those which name none.

    Raises ConfigError.
    """
    found: list[tuple[str, str | None]] = []
    for word in requested:
        name, _, own = word.partition(":")
        if name not in known:
            raise ConfigError(f"unknown output format '{name}'{did_you_mean(name, known)} (there are {', '.join(known)})")
        found.append((name, own or file))
    places = [place for _, place in found]
    if len(set(places)) < len(places):
        raise ConfigError("two output formats for one place; write '--output-format FORMAT:FILE' for all but one")
    return found
