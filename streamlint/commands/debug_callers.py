"""``streamlint debug callers``."""

from streamlint.commands.debug_facts import callers as main

__all__ = ["main"]
