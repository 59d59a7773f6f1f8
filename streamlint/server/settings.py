"""What the editor configures, and what of it the linter gets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamlint.server.jobs import Setup

SECTION = "streamlint"
# Settings of the client alone: how the server is started. They come along, and mean nothing here.
CLIENT_ONLY = ("path", "args", "trace", "enable")
KEYS = ("configuration", "delay")
DELAY = 200  # milliseconds without a change before a document is linted
LONGEST_DELAY = 10_000


@dataclass(slots=True)
class EditorSettings:
    """``configuration``: the path of a file, or a table of keys that change every file. ``faults`` are shown to the user."""

    configuration: str | Mapping[str, Any] | None = None
    delay: float = DELAY / 1000
    faults: list[str] = field(default_factory=list)


def read(value: object) -> EditorSettings:
    """The settings of a client: the section itself, or what holds it."""
    found = EditorSettings()
    table: object = value
    for name in ("settings", SECTION):
        if isinstance(table, Mapping) and isinstance(table.get(name), Mapping):
            table = table[name]
    if not isinstance(table, Mapping):
        return found
    for key, setting in table.items():
        if setting is None or key in CLIENT_ONLY:
            continue
        if key == "configuration" and isinstance(setting, (str, Mapping)):
            found.configuration = setting or None
        elif key == "delay" and isinstance(setting, (int, float)) and not isinstance(setting, bool):
            found.delay = min(max(setting, 0), LONGEST_DELAY) / 1000
        elif key in KEYS:
            found.faults.append(f"setting {SECTION}.{key}: {setting!r} is no value for it")
        else:
            found.faults.append(f"setting {SECTION}.{key} is not known; there are {', '.join((*KEYS, *CLIENT_ONLY[:2]))}")
    return found


def setup(start: Setup, folders: tuple[str, ...], encoding: str, settings: EditorSettings) -> Setup:
    """What the child gets: how the command was started, and what the editor says."""
    config, tables = start.config, start.tables
    if isinstance(settings.configuration, str):
        named = os.path.expanduser(settings.configuration)
        config = os.path.normpath(os.path.join(folders[0], named)) if folders else named
    elif settings.configuration:
        tables = (*tables, ("the editor's settings", dict(settings.configuration)))
    return Setup(folders, encoding, config, start.isolated, start.default_excludes, tables)
