"""JUnit XML as Jenkins and others read it: a suite a file, a failed case a finding."""

from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree as Xml

from streamlint.report import View
from streamlint.report.entries import entries, place_of
from streamlint.report.terminal import CONTROL, tame


def render(view: View) -> str:
    """One document; a run without findings is one case that passed."""
    rows = entries(view)
    root = Xml.Element("testsuites", name="streamlint", tests=str(max(len(rows), 1)), failures=str(len(rows)), errors="0")
    if not rows:
        suite = _suite(root, "streamlint", 1, 0)
        Xml.SubElement(suite, "testcase", name="no findings", classname="streamlint", time="0")
    for file, group in itertools.groupby(rows, key=lambda row: str(row["filename"])):
        mine = list(group)
        suite = _suite(root, file, len(mine), len(mine))
        for row in mine:
            _case(suite, row)
    Xml.indent(root)
    head, _, rest = Xml.tostring(root, encoding="unicode", xml_declaration=True).partition("\n")
    return head.replace("'", '"') + "\n" + rest + "\n"


def _suite(root: Xml.Element, name: str, tests: int, failures: int) -> Xml.Element:
    counts = {"tests": str(tests), "failures": str(failures), "errors": "0", "skipped": "0"}
    return Xml.SubElement(root, "testsuite", {"name": _text(name), "package": "streamlint", "time": "0", **counts})


def _case(suite: Xml.Element, row: dict[str, Any]) -> None:
    place = place_of(row)
    name = f"{row['name']} [{row['code']}] at {place}"
    case = Xml.SubElement(suite, "testcase", name=name, classname=_text(row["filename"]), time="0")
    failure = Xml.SubElement(case, "failure", message=_text(row["message"]), type=row["severity"])
    lines = [f"{row['filename']}:{place}: {row['name']} [{row['code']}] {row['message']}"]
    lines += [f"  {step['filename']}:{place_of(step, column=False)}: {step['message']}" for step in row["trail"]]
    lines += [f"help: {row['help']}"] if row["help"] else []
    failure.text = tame("\n".join(_text(line) for line in lines))


def _text(text: str) -> str:
    """XML has no way to hold control characters."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
