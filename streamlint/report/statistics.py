"""Counts by rule: ``--statistics``."""

from __future__ import annotations

import collections
import json

from streamlint.report import View


def render(view: View, as_json: bool = False) -> str:
    """Count, code, ``[*]`` if there is a fix, and name, the most frequent first."""
    counts = collections.Counter((finding.code, finding.name) for finding in view.report.findings)
    fixable = {finding.code for finding in view.report.findings if finding.fix}
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if as_json:
        table = [{"code": code, "name": name, "count": count, "fixable": code in fixable} for (code, name), count in rows]
        return json.dumps(table, indent=2) + "\n"
    digits = max((len(str(count)) for count in counts.values()), default=0)
    return "".join(f"{count:>{digits}}\t{code}\t[{'*' if code in fixable else ' '}] {name}\n" for (code, name), count in rows)
