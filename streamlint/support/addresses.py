"""Where the project lives. ``[project.urls]`` of ``pyproject.toml`` says the same to package indexes."""

from __future__ import annotations

SITE = "https://streamlint.readthedocs.io/"
RULES = f"{SITE}rules/"
CONFIGURATION = f"{SITE}configuration/"
SCHEMAS = f"{SITE}schemas/"
