"""The templates, a file a rule. The folder is the registry: each module names its ``RULE``, ``NAME`` and ``CASES``."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from streamlint.verify.cases import Case, Template


@functools.cache
def load() -> dict[str, Template]:
    """All templates by rule code, in order of the codes. Imports no CUDA library."""
    found: dict[str, Template] = {}
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda item: item.name):
        if info.name.startswith("sl"):
            module = importlib.import_module(f"{__name__}.{info.name}")
            found[module.RULE] = Template(module.RULE, module.NAME, tuple(module.CASES))
    return found


def find(rule: str, name: str, api: str) -> Case:
    """The case of that key; ``KeyError`` if there is none."""
    for case in load()[rule].cases:
        if case.key == (rule, name, api):
            return case
    raise KeyError((rule, name, api))
