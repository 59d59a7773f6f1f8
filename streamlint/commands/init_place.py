"""Where ``streamlint init`` puts a table: at the end of ``pyproject.toml``, in the place of the one there, or in a file of its own."""

from __future__ import annotations

import re
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.config.settings import MOST_BYTES, parse_toml
from streamlint.support.errors import ConfigError
from streamlint.support.reading import BOM, Unreadable, read_bytes

if TYPE_CHECKING:
    from typing import Any

HEAD = "[tool.streamlint]\n"
_TABLE = re.compile(r"[ \t]*\[\[?[^\[\]\n]*\]\]?[ \t]*(?:#[^\n]*)?$")
_OURS = re.compile(r"[ \t]*\[\[?[ \t]*tool[ \t]*\.[ \t]*streamlint[ \t]*[.\]]")


def placed(path: Path, table: str) -> bytes:
    """The bytes of ``pyproject.toml`` with our table, all else as it was; line ends are those of the file.

    Raises ConfigError where the file cannot be read, is no TOML, or says what a table of ours cannot stand beside.
    """
    try:
        data = read_bytes(path, MOST_BYTES)
    except Unreadable as error:
        raise ConfigError(f"{path}: {error}") from None
    before = parse_toml(data, str(path))
    mark = BOM if data.startswith(BOM) else b""
    text = data.removeprefix(BOM).decode("utf-8")
    end = "\r\n" if "\r\n" in text else "\n"
    new = (HEAD + table).replace("\n", end)
    above, below = _around(text)
    if above.strip():
        above = above.rstrip("\r\n") + end * 2
    whole = (above + new + (end + below if below.strip() else "")).encode()
    if not _is_whole(before, whole, table):
        raise ConfigError(f"{path}: a table [tool.streamlint] cannot be written here; use --standalone, or write it by hand")
    return mark + whole


def _around(text: str) -> tuple[str, str]:
    """What stands before and after our tables: all and nothing where there are none. Comments at the next head belong to it."""
    lines = text.splitlines(keepends=True)
    ours = seen_ours = False
    kept: tuple[list[str], list[str]] = ([], [])
    pending: list[str] = []  # comments at the end of what is ours
    for line in lines:
        if _TABLE.match(line.rstrip("\r\n")):
            was, ours = ours, _OURS.match(line) is not None
            seen_ours = seen_ours or ours
            if was and not ours:
                kept[seen_ours].extend(pending)
        if ours:
            pending = [*pending, line] if line.lstrip().startswith("#") else []
        else:
            kept[seen_ours].append(line)
            pending = []
    return "".join(kept[0]), "".join(kept[1])


def _is_whole(before: dict[str, Any], whole: bytes, table: str) -> bool:
    """Whether the new file says what the old one did, and our table."""
    try:
        after = parse_toml(whole, "")
        ours = parse_toml(table.encode(), "")
    except ConfigError:
        return False
    wanted = dict(before)
    wanted["tool"] = {**(before.get("tool") or {}), "streamlint": ours} if isinstance(before.get("tool", {}), dict) else None
    return after == wanted
