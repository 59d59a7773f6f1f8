"""Files of a recorded run under the names that `check` prints."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from streamlint.support.records import field, record

_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python3")


@record(slots=True)
class Names:
    """Gives a recorded file its name: that of the linted file it is, its own below the current folder, none where it is installed.

    A recording of another machine, or of another folder, has other paths: a linted file is then found by the longest common end of both.
    Where two fit equally well, none is taken.
    """

    linted: Iterable[str]  # as findings name them, with repetitions
    _by_path: dict[str, str] = field(default_factory=dict, init=False)
    _by_base: dict[str, list[str]] = field(default_factory=dict, init=False)
    _known: dict[str, str | None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for name in dict.fromkeys(self.linted):
            self._by_path[os.path.realpath(name)] = name
            self._by_base.setdefault(os.path.basename(name), []).append(name)

    def __call__(self, recorded: str) -> str | None:
        if recorded not in self._known:
            self._known[recorded] = self._name(recorded) if recorded else None
        return self._known[recorded]

    def is_linted(self, name: str) -> bool:
        """Whether a name that was given is that of a linted file."""
        return os.path.realpath(name) in self._by_path

    def _name(self, recorded: str) -> str | None:
        real = os.path.realpath(recorded)
        if real in self._by_path:
            return self._by_path[real]
        here = os.path.exists(real)
        if not here and (found := self._alike(recorded)) is not None:
            return found
        if any(part in recorded.replace(os.sep, "/") for part in _INSTALLED) or recorded.startswith("<"):
            return None
        return _display(os.path.abspath(recorded)) if here else recorded

    def _alike(self, recorded: str) -> str | None:
        """The linted file whose path ends most like a recorded one."""
        wanted = recorded.replace("\\", "/").split("/")
        found = [(common_end(os.path.abspath(name).split(os.sep), wanted), name) for name in self._by_base.get(wanted[-1], ())]
        most = max((length for length, _ in found), default=0)
        best = [name for length, name in found if length == most]
        return best[0] if len(best) == 1 else None


def common_end(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts at the end of two paths are the same."""
    length = 0
    for mine, theirs in zip(reversed(one), reversed(other), strict=False):
        if mine != theirs:
            break
        length += 1
    return length


def _display(path: str) -> str:
    """As `check` shows it: relative to the current folder where it lies below."""
    above = os.getcwd().rstrip(os.sep) + os.sep
    return path.removeprefix(above).replace(os.sep, "/")
