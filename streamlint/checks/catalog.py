"""Codes, names and defaults of all rules without their code: a run that finds everything kept, or nothing to read, imports no check.

The folder of the checks is the registry here as well: a file is called by its rule's code and name, and the default stands in its text.
"""

from __future__ import annotations

import collections
import functools
import os
import re
from collections.abc import Iterator

UNREADABLE = "SL000"
UNREADABLE_NAME = "unreadable-source"
UNUSED = "SL900"
CONTRADICTED = "SL901"

Entry = collections.namedtuple("Entry", ("code", "name", "default"))
CHECKS = os.path.dirname(__file__)
OWN = (
    Entry(UNREADABLE, UNREADABLE_NAME, "off"),
    Entry(UNUSED, "unused-suppression", "off"),
    Entry(CONTRADICTED, "contradicted-declaration", "on"),
)

_FILE = re.compile(r"(sl\d{3})_(\w+)\.py")
_DEFAULT = re.compile(r'^    default = "(\w+)"$', re.MULTILINE)


@functools.cache
def entries() -> dict[str, Entry]:
    """Every rule by code, in the order of codes."""
    return dict(sorted((entry.code, entry) for entry in (*OWN, *checks())))


def checks() -> Iterator[Entry]:
    """The rules that have a check."""
    for match in filter(None, map(_FILE.fullmatch, os.listdir(CHECKS))):
        with open(os.path.join(CHECKS, match[0]), encoding="utf-8") as file:
            said = _DEFAULT.search(file.read())
        yield Entry(match[1].upper(), match[2].replace("_", "-"), said[1] if said else "on")


@functools.cache
def code_of() -> dict[str, str]:
    """Codes by every word that a user may write for a rule: its code and its name."""
    words = {code: code for code in entries()}
    words.update({entry.name: code for code, entry in entries().items()})
    return words
