"""What tools print, as SARIF logs."""

from __future__ import annotations

import json
import re
from typing import Any

from benchmarks.streambench.sarif import log, result

_LINE = re.compile(
    r"^(?P<file>[^:\n]+):(?P<row>\d+):(?:\d+:)? (?:\x1b\[\d*m)?(?P<rule>\w+):?(?:\x1b\[\d*m)? (?P<text>.*)$",
    re.MULTILINE,
)


def lines(text: str) -> dict[str, Any]:
    """`FILE:ROW:COLUMN: RULE message` in lines, in colours or not, with a column or without."""
    return log("", (result(found["rule"], found["text"], found["file"], int(found["row"])) for found in _LINE.finditer(text)))


def preflight(text: str) -> dict[str, Any]:
    """torch-preflight's SARIF. TG004 speaks of workers, of pinning and of prefetching: what it says of pinning gets a rule of its own."""
    found: dict[str, Any] = json.loads(text)
    for each in (each for run in found["runs"] for each in run.get("results", ())):
        if each["ruleId"] == "TG004" and "`pin_memory`" in each["message"]["text"]:
            each["ruleId"] = "TG004-pin"
    return found


def hotpath(text: str) -> dict[str, Any]:
    """hotpath's JSON: files with their findings."""
    found = [(file["path"], each) for file in json.loads(text)["files"] for each in file["findings"]]
    return log("hotpath", (result(each["rule_id"], each["message"], path, each["line"]) for path, each in found))
