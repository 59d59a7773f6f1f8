"""The formats for machines, on made-up findings: what each says, and the schemas that their owners publish."""

from __future__ import annotations

import copy
import json
import os
import re
import urllib.parse
import xml.etree.ElementTree as Xml
from dataclasses import replace
from pathlib import Path

import forks
import jsonschema
import pytest
import sarif_parts

from streamlint.findings import Category, Edit, Finding, Fix, Problem, Report, Span, Step
from streamlint.report import View, render

SCHEMAS = [Path(__file__).with_name("schemas"), Path(os.environ.get("STREAMLINT_SCHEMAS") or "/nonexistent")]
TEXT = 'import torch\nhost = torch.empty(8)\nx = "日本", host.to("cuda", non_blocking=True)\n'
HOST = Span("src/a b.py", 2, 8, 2, 22)
COPY = Span("src/a b.py", 3, 11, 3, 45)
STALL = Finding(
    "SL001",
    "unpinned-non-blocking",
    Category.STALL,
    "copies <pageable> | memory",
    COPY,
    (Step("allocated here", HOST), Step("read here", Span("src/other.py", 1, 1, 1, 2))),
    help="pin it",
    fix=Fix("allocate it pinned", (Edit(", pin_memory=True", Span("src/a b.py", 2, 21, 2, 21)),)),
    facts={"bytes": 8},
    related=("SL005",),
)
RACE = Finding("SL005", "d2h-read-before-sync", Category.RACE, "100% too\x1b early", replace(HOST, row=1, end_row=1))
PROBLEM = Problem("src/p.py", "does not parse", 3, 4)
TEXTS = {"src/a b.py": TEXT}
EVIDENCE = {"SL005": {"verdict": "CONFIRMED", "level": "rule", "platform": "GPU", "date": "2026-11-20", "summary": "stale"}}
FULL = View(Report([STALL, RACE], [PROBLEM], texts=TEXTS), evidence=EVIDENCE)
EMPTY = View(Report())
BASELINED = View(Report([STALL], baselined=[RACE], baseline="known.json", texts=TEXTS))
VIEWS = {"full": FULL, "empty": EMPTY, "baselined": BASELINED}


@pytest.fixture(autouse=True)
def project(made_up_rules, tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return tmp_path


def schema(name):
    found = [folder / name for folder in SCHEMAS if (folder / name).is_file()]
    if not found:
        pytest.skip(f"{name} is not at hand (tests/report/schemas/README.md)")
    return found[0]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("format", "name"), [("sarif", "sarif-schema-2.1.0.json"), ("rdjson", "rdjson.json")])
def test_published_json_schemas(format, name, view):
    rules = json.loads(schema(name).read_text())
    validator = jsonschema.validators.validator_for(rules)
    checker = validator(rules, format_checker=validator.FORMAT_CHECKER)
    assert [error.message for error in checker.iter_errors(json.loads(render(format, VIEWS[view])))] == []


@pytest.mark.parametrize("view", VIEWS)
def test_the_schema_of_junit(view):
    import xmlschema

    rules = xmlschema.XMLSchema(str(schema("junit-10.xsd")))
    assert [error.reason for error in rules.iter_errors(Xml.fromstring(render("junit", VIEWS[view])))] == []


# SARIF ------------------------------------------------------------------------------------------------------------------------


def sarif(view):
    (run,) = json.loads(render("sarif", view))["runs"]
    return run


def test_sarif_says_what_the_findings_say():
    run = sarif(FULL)
    first, second, third = run["results"]
    assert [row["ruleId"] for row in run["results"]] == ["SL005", "SL001", "SL000"]
    assert [row["level"] for row in run["results"]] == ["error", "warning", "warning"]
    assert [run["tool"]["driver"]["rules"][row["ruleIndex"]]["id"] for row in run["results"]] == ["SL005", "SL001", "SL000"]
    assert second["message"]["text"] == "copies <pageable> | memory\nhelp: pin it"
    assert second["properties"] == {"facts": {"bytes": 8}, "related": ["SL005"]}
    assert first["properties"]["evidence"]["verdict"] == "CONFIRMED"
    assert "codeFlows" not in first
    assert third["message"]["text"] == "does not parse"
    assert run["columnKind"] == "unicodeCodePoints"


def test_sarif_paths_start_at_the_repository():
    place = sarif(FULL)["results"][1]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "work/src/a%20b.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 3, "startColumn": 11, "endLine": 3, "endColumn": 45}


def test_sarif_resolves_links(project):
    (project / "real").mkdir()
    (project / "real" / "a.py").write_text("x\n")
    Path("link").symlink_to(project / "real")
    found = replace(RACE, span=replace(HOST, file="link/a.py"))
    place = sarif(View(Report([found])))["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uri"] == "real/a.py"


def test_sarif_outside_of_a_repository(project):
    (project / ".git").rmdir()
    uris = {row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for row in sarif(FULL)["results"]}
    assert uris == {"src/a%20b.py", "src/p.py"}


def test_the_trail_is_a_code_flow_that_ends_at_the_operation():
    ((flow,),) = (flow["threadFlows"] for flow in sarif(FULL)["results"][1]["codeFlows"])
    steps = [(step["location"]["message"]["text"], step["importance"]) for step in flow["locations"]]
    assert steps == [("allocated here", "important"), ("read here", "important"), ("copies <pageable> | memory", "essential")]


def test_the_page_is_the_rules_help():
    rule = sarif(FULL)["tool"]["driver"]["rules"][1]
    assert rule["help"]["markdown"].startswith("# unpinned-non-blocking (SL001)\n")
    assert rule["helpUri"].endswith("/rules/unpinned-non-blocking/")
    assert rule["properties"]["tags"] == ["cuda", "stall"]
    assert max(len(rule[key]["text"]) for key in ("shortDescription", "fullDescription")) <= 1024


def test_a_fix_is_an_artifact_change():
    ((fix,),) = (row["fixes"] for row in sarif(FULL)["results"] if "fixes" in row)
    (change,) = fix["artifactChanges"]
    region = {"startLine": 2, "startColumn": 21, "endLine": 2, "endColumn": 21}
    assert change["replacements"] == [{"deletedRegion": region, "insertedContent": {"text": ", pin_memory=True"}}]
    assert fix["description"]["text"] == "allocate it pinned (unsafe)"


def test_baselined_findings_are_suppressed_not_lost():
    rows = {row["ruleId"]: row["suppressions"] for row in sarif(BASELINED)["results"]}
    assert rows["SL001"] == []
    assert rows["SL005"] == [{"kind": "external", "status": "accepted", "justification": "in the baseline known.json"}]


def test_only_sarif_shows_what_a_baseline_hides():
    assert [row["code"] for row in json.loads(render("json", BASELINED))] == ["SL001"]


def test_fingerprints_are_ours_alone():
    marks = [row["partialFingerprints"] for row in sarif(FULL)["results"]]
    assert [list(mark) for mark in marks] == [["streamlint/v1"]] * 3
    moved = replace(FULL, report=replace(FULL.report, texts={"src/a b.py": TEXT}))
    assert [row["partialFingerprints"] for row in sarif(moved)["results"]] == marks


# What the standard wants, which the published schema says as well where it is at hand.
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
URI = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]*")
checker = jsonschema.FormatChecker(formats=())


@checker.checks("uri-reference")
def is_reference(value: object) -> bool:
    """RFC 3986: only its signs, and each percent sign begins two digits."""
    return not isinstance(value, str) or (URI.fullmatch(value) is not None and re.search(r"%(?![0-9A-Fa-f]{2})", value) is None)


@checker.checks("uri")
def is_uri(value: object) -> bool:
    return not isinstance(value, str) or (is_reference(value) and bool(urllib.parse.urlsplit(value).scheme))


VALIDATOR = jsonschema.Draft7Validator(sarif_parts.LOG, format_checker=checker)


def log(view):
    return json.loads(render("sarif", VIEWS[view]))


def wrong(data):
    return sorted(f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in VALIDATOR.iter_errors(data))


def places(value):
    """All artifact locations of a log."""
    if isinstance(value, dict):
        yield from (inner for key, inner in value.items() if key == "artifactLocation")
        for inner in value.values():
            yield from places(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from places(inner)


@pytest.mark.parametrize("view", VIEWS)
def test_the_schema(view):
    assert wrong(log(view)) == []


def test_the_whole_of_a_real_run(tmp_path):
    """With the project's own rules: their pages, levels and evidence."""
    (tmp_path / "a b.py").write_text('import torch\n\n\ndef f(x):\n    host = x.to("cpu", non_blocking=True)\n    return host.numpy()\n')
    (tmp_path / "b.py").write_text("import torch\ns = torch.cuda.Stream(\n")
    data = json.loads(forks.run(tmp_path, "check", "--output-format", "sarif", "--no-cache").stdout)
    assert [row["ruleId"] for row in data["runs"][0]["results"]] == ["SL005", "SL000"]
    assert wrong(data) == []
    held_together(data)


@pytest.mark.parametrize("view", VIEWS)
def test_what_the_text_adds(view):
    held_together(log(view))


def held_together(data):
    (run,) = data["runs"]
    driver = run["tool"]["driver"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    assert SEMVER.fullmatch(driver["semanticVersion"])
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
    for place in places(data):
        relative = not urllib.parse.urlsplit(place["uri"]).scheme
        assert place.get("uriBaseId", "SRCROOT") in run["originalUriBaseIds"]
        assert not relative or not place["uri"].startswith(("/", "../"))
    for region in [step["physicalLocation"]["region"] for result in run["results"] for step in result["locations"]]:
        assert (region["startLine"], region["startColumn"]) <= (region["endLine"], region["endColumn"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda run: run.pop("tool"), "'tool' is a required property"),
        (lambda run: run.update(columnKind="bytes"), "'bytes' is not one of"),
        (lambda run: run["results"][0].pop("message"), "'message' is a required property"),
        (lambda run: run["results"][0]["message"].clear(), "is not valid under any of the given schemas"),
        (lambda run: run["results"][0].update(level="info"), "'info' is not one of"),
        (lambda run: run["results"][0].update(severity="error"), "('severity' was unexpected)"),
        (
            lambda run: run["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
            "0 is less than the minimum of 1",
        ),
        (lambda run: run["results"][1]["codeFlows"][0].update(threadFlows=[]), "[] should be non-empty"),
        (lambda run: run["results"][1]["fixes"][0]["artifactChanges"][0]["replacements"][0].pop("deletedRegion"), "is a required property"),
        (lambda run: run["tool"]["driver"].update(informationUri="streamlint"), "'streamlint' is not a 'uri'"),
        (lambda run: run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"].update(uri="a b.py"), "'uri-reference'"),
        (lambda run: run["tool"]["driver"]["rules"].append(run["tool"]["driver"]["rules"][0]), "has non-unique elements"),
    ],
)
def test_the_check_sees_what_is_wrong(change, told):
    data = copy.deepcopy(log("full"))
    change(data["runs"][0])
    (message,) = wrong(data)
    assert told in message


# The others -------------------------------------------------------------------------------------------------------------------


def test_gitlab():
    race, stall, problem = json.loads(render("gitlab", FULL))
    assert stall == {
        "description": "unpinned-non-blocking [SL001] copies <pageable> | memory",
        "check_name": "unpinned-non-blocking",
        "fingerprint": stall["fingerprint"],
        "severity": "major",
        "location": {"path": "work/src/a b.py", "lines": {"begin": 3, "end": 3}},
    }
    assert (race["severity"], problem["severity"]) == ("critical", "major")
    assert len({race["fingerprint"], stall["fingerprint"], problem["fingerprint"]}) == 3


def test_gitlab_without_findings():
    assert render("gitlab", EMPTY) == "[]\n"


def test_junit():
    root = Xml.fromstring(render("junit", FULL))
    assert root.attrib == {"name": "streamlint", "tests": "3", "failures": "3", "errors": "0"}
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [("src/a b.py", "2"), ("src/p.py", "1")]
    case = root[0][1]
    assert case.attrib == {"name": "unpinned-non-blocking [SL001] at 3:11", "classname": "src/a b.py", "time": "0"}
    assert case[0].get("type") == "warning"
    assert case[0].text.splitlines()[1:] == ["  src/a b.py:2: allocated here", "  src/other.py:1: read here", "help: pin it"]


def test_junit_without_findings_is_one_case_that_passed():
    root = Xml.fromstring(render("junit", EMPTY))
    assert (root.get("tests"), root.get("failures")) == ("1", "0")
    assert [len(case) for suite in root for case in suite] == [0]


def test_rdjson():
    data = json.loads(render("rdjson", FULL))
    assert data["source"]["name"] == "streamlint"
    stall = data["diagnostics"][1]
    assert stall["message"] == "copies <pageable> | memory\nhelp: pin it"
    assert stall["severity"] == "WARNING"
    assert stall["code"]["value"] == "unpinned-non-blocking [SL001]"
    assert stall["location"]["path"] == "work/src/a b.py"
    assert stall["related_locations"][0]["message"] == "allocated here"
    point = {"line": 2, "column": 21}
    assert stall["suggestions"] == [{"range": {"start": point, "end": point}, "text": ", pin_memory=True"}]


def test_columns_of_rdjson_are_bytes():
    where = json.loads(render("rdjson", FULL))["diagnostics"][1]["location"]["range"]
    assert where == {"start": {"line": 3, "column": 15}, "end": {"line": 3, "column": 49}}


def test_pylint():
    assert render("pylint", FULL) == (
        "src/a b.py:1: [SL005] 100% too\N{REPLACEMENT CHARACTER} early\n"
        "src/a b.py:3: [SL001] copies <pageable> | memory\n"
        "src/p.py:3: [SL000] does not parse\n"
    )


def test_azure():
    odd = replace(STALL, span=replace(COPY, file="src/a;b]%.py"), message="a; b]\n100%")
    text = render("azure", replace(FULL, report=replace(FULL.report, findings=[odd, RACE])))
    assert text == (
        "##vso[task.logissue type=error;sourcepath=src/a b.py;linenumber=1;columnnumber=8;code=SL005;]"
        "100%AZP25 too\N{REPLACEMENT CHARACTER} early\n"
        "##vso[task.logissue type=warning;sourcepath=src/a%3Bb%5D%AZP25.py;linenumber=3;columnnumber=11;code=SL001;]a; b]%0A100%AZP25\n"
        "##vso[task.logissue type=warning;sourcepath=src/p.py;linenumber=3;columnnumber=4;code=SL000;]does not parse\n"
    )


@pytest.mark.parametrize("format", ["pylint", "azure"])
def test_formats_of_lines_say_nothing_of_nothing(format):
    assert render(format, EMPTY) == ""


def test_markdown():
    text = render("markdown", FULL)
    assert text.startswith("## streamlint: 3 findings\n\n| place | rule | finding |\n|---|---|---|\n")
    row = text.splitlines()[5]
    assert row.startswith("| `src/a b.py:3` | [unpinned-non-blocking](https://")
    assert "**warning**: copies &lt;pageable> \\| memory<br>`src/a b.py:2` allocated here<br>" in row
    assert row.endswith("*help:* pin it |")


def test_markdown_without_findings():
    assert render("markdown", EMPTY) == "## streamlint: 0 findings\n"


def test_grouped():
    assert render("grouped", replace(FULL, unsafe_fixes=True)) == (
        "src/a b.py:\n"
        "  3:11  unpinned-non-blocking [SL001] [*] copies <pageable> | memory\n"
        "  1:8   d2h-read-before-sync [SL005] 100% too� early\n\n"
    )
