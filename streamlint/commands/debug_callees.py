"""``streamlint debug callees``."""

from streamlint.commands.debug_facts import callees as main

__all__ = ["main"]
