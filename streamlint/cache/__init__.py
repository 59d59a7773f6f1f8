"""What earlier runs found, kept by content: nothing is analysed twice, and nothing wrong is ever reused.

In: sources and what was lowered and found of them. Out: the same, where it still holds.
May import: ``config``, ``discovery``, ``findings``, ``ir``, ``build_files``, ``support``.
"""

from __future__ import annotations

from streamlint.cache.store import Store, folder_of, open_store

__all__ = ["Store", "folder_of", "open_store"]
