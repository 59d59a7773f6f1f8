"""The effects of calls and attributes, each with the keys of its rows. ``keys.py`` describes the keys."""

from __future__ import annotations

from streamlint.models.effects.data import DATA
from streamlint.models.effects.objects import OBJECTS
from streamlint.models.effects.threads import THREADS
from streamlint.models.effects.work import WORK
from streamlint.models.keys import Effect

# The groups of the reference page.
GROUPS = {
    "Buffers, copies and allocation": DATA,
    "Work, streams and events": WORK,
    "Objects and settings": OBJECTS,
    "Threads, processes and Python": THREADS,
}
EFFECTS: dict[str, Effect] = {effect.name: effect for group in GROUPS.values() for effect in group}
