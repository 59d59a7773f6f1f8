"""Names, sources and messages that try to be more than text: in each format they stay what they are."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from streamlint.findings import Category, Edit, Finding, Fix, Problem, Report, Span, Step
from streamlint.report import FORMATS, View, render
from streamlint.support.writing import write_output

EVIL = (
    "a\x1b[31m\x1b]8;;http://evil\x07b",
    "a\n::error file=x::owned\nb",
    "a\r::stop-commands::x\r",
    "a\u202eb\u2066c\u200fd",
    "a%0A::error::b,file=c:d",
    "<script>alert(1)</script>&amp;]]>",
    '"><img src=x onerror=alert(1)>',
    "a|b`c`[d](http://evil)![e](x)*f*_g_~h~\\|",
    "a\0b\x07c\x7fd\x9be",
    "a\udc80b\udcffc",
    "</failure></testcase><testcase name='x'>",
    "@everyone #1 <!-- a --> \u2028\u2029\x85",
)
TERMINAL = ("full", "concise", "grouped", "pylint")
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def report(evil: str) -> Report:
    name = evil.replace("\0", "0")  # no system has a name with it
    file = f"src/{name}.py"
    span = Span(file, 1, 1, 1, 4)
    fix = Fix(applicability="safe", message=f"mends {evil}", edits=(Edit(span=span, content=evil),))
    steps = (Step(message=f"from {evil}", span=span), Step(f"to {evil}", Span(f"other/{name}.py", 1, 1, 1, 2)))
    finding = Finding("SL001", "unpinned-non-blocking", Category.STALL, f"copies {evil} now", span, steps, help=f"pin {evil}", fix=fix)
    found = Report(findings=[finding], files=1, relevant=1)
    found.texts = {file: f"x = '{evil}'", f"other/{name}.py": evil}
    found.problems = [Problem(f"bad/{name}.py", f"cannot {evil}")]
    return found


def shown(format: str, evil: str, color: bool = False) -> str:
    return render(format, View(report(evil), color=color))


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("format", FORMATS)
def test_every_format_can_be_written(format: str, evil: str) -> None:
    text = shown(format, evil)
    assert text
    text.encode("utf-8", "backslashreplace")


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("format", TERMINAL)
def test_a_terminal_obeys_nothing(format: str, evil: str) -> None:
    assert OBEYED.findall(shown(format, evil)) == []
    painted = re.sub(r"\x1b\[[\d;]*m", "", shown(format, evil, color=True))
    assert OBEYED.findall(painted) == []


@pytest.mark.parametrize("format", TERMINAL)
def test_no_line_holds_a_command_of_azure(format: str) -> None:
    """In names, messages and sources, wherever it stands; columns stay."""
    text = shown(format, "a ##vso[task.setvariable variable=x]y ##VSO[build.addbuildtag]z")
    assert "##vso[" not in text.lower()
    assert "a #\N{REPLACEMENT CHARACTER}vso[task.setvariable variable=x]y" in text


@pytest.mark.parametrize("evil", EVIL)
def test_a_finding_is_a_line_of_pylint(evil: str) -> None:
    lines = shown("pylint", evil).split("\n")
    assert len(lines) == 3
    assert all(re.fullmatch(r".+:1: \[SL00[01]\] .+", line) for line in lines[:-1])


@pytest.mark.parametrize("evil", EVIL)
def test_a_finding_is_a_line_in_concise(evil: str) -> None:
    lines = shown("concise", evil).split("\n")
    assert len(lines) == 2
    assert "[SL001]" in lines[0]


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("format", ["full", "grouped", "markdown"])
def test_no_line_begins_with_a_command_of_github(format: str, evil: str) -> None:
    """What is printed in a job is read for commands, whatever the format."""
    lines = re.split(r"[\r\n]", shown(format, evil))
    assert [line for line in lines if re.match(r"\s*::[^:]", line)] == []


@pytest.mark.parametrize("evil", EVIL)
def test_annotations(evil: str) -> None:
    lines = re.split(r"[\r\n\x0b\x0c\x85\u2028\u2029]+", shown("github", evil).rstrip("\n"))
    assert len(lines) == 2
    for line in lines:
        match = re.fullmatch(r"::(?:error|warning|notice) ([^:]*)::(.*)", line)
        assert match
        keys = [pair.partition("=")[0] for pair in match[1].split(",")]
        assert keys[:3] == ["title", "file", "line"]
        assert len(set(keys)) == len(keys)
        assert OBEYED.findall(line) == []


@pytest.mark.parametrize("evil", [*EVIL, "a;b]c\n##vso[task.setvariable variable=x]y"])
def test_issues_of_azure(evil: str) -> None:
    """A line each, which begins with its own command: the agent looks for the first one in a line."""
    lines = re.split(r"[\r\n\x0b\x0c\x85\u2028\u2029]+", shown("azure", evil).rstrip("\n"))
    assert len(lines) == 2
    for line in lines:
        match = re.fullmatch(r"##vso\[task\.logissue ([^\]]*)\](.*)", line)
        assert match
        assert [pair.partition("=")[0] for pair in match[1].split(";")] == ["type", "sourcepath", "linenumber", "columnnumber", "code", ""]
        assert OBEYED.findall(line) == []


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("format", ["json", "sarif", "gitlab", "rdjson"])
def test_json_keeps_the_text(format: str, evil: str) -> None:
    text = shown(format, evil)
    assert text.isascii()
    strings = set[str]()

    def collect(value: object) -> None:
        if isinstance(value, str):
            strings.add(value)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(inner)

    collect(json.loads(text))
    assert any(f"copies {evil} now" in string for string in strings)


@pytest.mark.parametrize("evil", EVIL)
def test_json_lines(evil: str) -> None:
    lines = shown("json-lines", evil).split("\n")
    assert [json.loads(line)["code"] for line in lines[:-1]] == ["SL000", "SL001"]


@pytest.mark.parametrize("evil", EVIL)
def test_junit(evil: str) -> None:
    root = ElementTree.fromstring(shown("junit", evil).encode("utf-8", "backslashreplace"))
    assert [case.attrib["name"] for case in root.iter("testcase")] == [
        "unreadable-source [SL000] at 1:1",
        "unpinned-non-blocking [SL001] at 1:1",
    ]
    assert len(list(root.iter("failure"))) == 2
    assert {element.tag for element in root.iter()} == {"testsuites", "testsuite", "testcase", "failure"}


@pytest.mark.parametrize("evil", EVIL)
def test_sarif_addresses_are_addresses(evil: str) -> None:
    data = json.loads(shown("sarif", evil))
    addresses = set[str]()

    def collect(value: object) -> None:
        if isinstance(value, dict):
            addresses.update(inner for key, inner in value.items() if key == "uri")
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    collect(data)
    assert addresses
    for address in addresses:
        assert re.fullmatch(r"[A-Za-z0-9%/._~:#-]+", address), address


@pytest.mark.parametrize("evil", EVIL)
def test_markdown_has_a_row_a_finding_and_no_markup_of_others(evil: str) -> None:
    lines = shown("markdown", evil).split("\n")
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 4
    assert len([line for line in lines if line]) == 5
    for row in rows[2:]:
        assert len(re.findall(r"(?<!\\)\|", row)) == 4
        plain = re.sub(r"`[^`]*`", "", row)
        assert not re.search(r"<(?!br>)", plain)
        assert re.findall(r"(?<!\\)\]\(([^)]*)\)", plain) == re.findall(r"\]\((https://streamlint[^)]*)\)", plain)
        assert OBEYED.findall(row) == []


class _Tags(HTMLParser):
    """Elements with their attributes, in order; what is only told of may differ."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [name for name, _ in attrs]))


def verified(evil: str) -> str:
    """The HTML page of `verify`, where everything that comes from programs, platforms and findings says this."""
    pytest.importorskip("jinja2")
    from streamlint.verify import page

    lanes = [{"name": evil, "kind": "host", "spans": [{"from": 0.5, "to": 2.0, "what": evil}]}]
    side = {"gate_ms": [20.0, 120.0], "timeline": lanes, "error": evil}
    finding = {"file": f"src/{evil}.py", "row": 3, "message": f"copies {evil}"}
    case = {"rule": "SL003", "case": evil, "api": evil, "prediction": evil, "reason": evil, "verdict": "CONFIRMED", "platform": evil}
    case |= {"facts": {evil: evil}, "findings": [finding], "misuse": side, "remedy": side, "seconds": 0.8}
    return page.render({"gpu": evil, "driver": evil, "packages": {evil: evil}}, [case], [evil])


@pytest.mark.parametrize("evil", EVIL)
def test_the_page_of_verify_has_no_markup_of_others(evil: str, tmp_path: Path) -> None:
    text = verified(evil)
    assert _Tags(text).found == _Tags(verified("plain")).found
    write_output(tmp_path / "page.html", text)
    assert (tmp_path / "page.html").stat().st_size > 2_000
