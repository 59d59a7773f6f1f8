"""streamlint finds CUDA stream misuse in Python and C++, and tests its predictions on the GPU."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # type checkers take it for true; importing `typing` would cost a third of the start

if TYPE_CHECKING:
    from streamlint.config.settings import Settings as Settings
    from streamlint.findings import Finding as Finding
    from streamlint.findings import Report as Report
    from streamlint.record import record as record
    from streamlint.runner.linter import lint as lint
    from streamlint.support.errors import StreamlintError as StreamlintError

__version__ = "0.1.0"
__all__ = ["Finding", "Report", "Settings", "StreamlintError", "__version__", "lint", "record"]

_HOMES = {
    "Finding": "streamlint.findings",
    "Report": "streamlint.findings",
    "Settings": "streamlint.config.settings",
    "StreamlintError": "streamlint.support.errors",
    "lint": "streamlint.runner.linter",
    "record": "streamlint.record",
}


def __getattr__(name: str) -> object:
    """The library's names are imported when they are first asked for: the command line must start fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'streamlint' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)
