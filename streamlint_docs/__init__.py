"""The documentation's site: pages that are made from the code and from what was measured, the build, and the check of its links.

``python -m streamlint_docs`` writes the sources of the site to ``build/site-source``, builds it into ``build/site`` with warnings as
errors, and follows each of its links. It is a tool of the repository and no part of the package.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
