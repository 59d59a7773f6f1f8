"""Sources without what says nothing to who lowers and runs them."""

from __future__ import annotations

from streamlint.config.options import Source
from streamlint.frontends.python_comments import without_comments
from streamlint.support.records import replace


def strip_comments(source: Source) -> Source:
    """A source without its comments, where they are sure to be known; C++ is left as it is. Each text is gone over once."""
    if source.is_stripped or source.language != "python":
        return source
    return replace(source, text=without_comments(source.text), is_stripped=True)
