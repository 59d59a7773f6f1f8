"""The text about the rule under the cursor."""

from __future__ import annotations

import functools
import re

from streamlint.checks.rules import all_rules, code_of
from streamlint.report.pages import markdown
from streamlint.triage.suppress import NOQA, OWN


@functools.cache
def page(code: str) -> str:
    """A rule's page, as ``streamlint rule`` prints it."""
    return markdown(all_rules()[code])


def code_at(line: str, column: int) -> tuple[str, int, int] | None:
    """The rule that a suppression comment names at a column (an offset in code points), with the place of the word."""
    for pattern in (OWN, NOQA):
        for match in pattern.finditer(line):
            if match["codes"] is None or not re.search(r"#|//|/\*", line[: match.start()]):
                continue
            words = [
                (word[0], word.start() + match.start("codes"), word.end() + match.start("codes"))
                for word in re.finditer(r"[\w-]+", match["codes"])
            ]
            known = [(code_of()[word], start, end) for word, start, end in words if word in code_of()]
            for code, start, end in known:
                if start <= column <= end or (len(known) == 1 and match.start() <= column <= match.end("codes") + 1):
                    return code, start, end
    return None
