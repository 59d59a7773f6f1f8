"""What earlier runs found, kept by content: nothing is analysed twice, and nothing wrong is ever reused."""

from __future__ import annotations

from streamlint.cache.store import Store, folder_of, open_store

__all__ = ["Store", "folder_of", "open_store"]
