"""SARIF 2.1.0 for code scanning: trails as code flows, pages as help, baselined findings as suppressions."""

from __future__ import annotations

import json
from typing import Any

from streamlint import __version__
from streamlint.checks.rules import all_rules
from streamlint.findings import Category
from streamlint.report import View
from streamlint.report.entries import entries, page, place_of
from streamlint.report.pages import markdown
from streamlint.report.places import as_uri, repository_path
from streamlint.support.addresses import SITE

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LONGEST = 1024  # of a description, for GitHub
PRECISION = {"on": "high", "preview": "medium", "off": "medium"}
PROBLEM_SEVERITY = {"error": "error", "warning": "warning", "note": "recommendation"}


def render(view: View) -> str:
    """One log with one run."""
    return json.dumps(log(view), indent=2, default=str) + "\n"


def log(view: View) -> dict[str, Any]:
    """The log as plain data."""
    rows = entries(view, baselined=True)
    codes = sorted({row["code"] for row in rows})
    driver = {
        "name": "streamlint",
        "informationUri": SITE,
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(code) for code in codes],
    }
    notices = [_notice(row, view) for row in rows if _is_problem(row)]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The root of the repository."}}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notices}],
        "results": [_result(row, codes, view) for row in rows],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    rule = all_rules()[code]
    sections = rule.documentation()
    address, text = page(rule.name), markdown(rule)
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": _short(sections[""])},
        "fullDescription": {"text": _short(sections.get("What it does") or sections[""])},
        "help": {"text": text, "markdown": f"{text}\n[{rule.name}]({address})\n"},
        "helpUri": address,
        "defaultConfiguration": {"level": _level(rule.category), "enabled": rule.default == "on"},
        "properties": {
            "tags": ["cuda", rule.category.value],
            "precision": PRECISION[rule.default],
            "problem.severity": PROBLEM_SEVERITY[rule.category.severity.value],
        },
    }


def _level(category: Category) -> str:
    return category.severity.value


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else flat[: LONGEST - 3].rstrip() + "..."


def _is_problem(row: dict[str, Any]) -> bool:
    return bool(row["code"] == "SL000")


def _notice(row: dict[str, Any], view: View) -> dict[str, Any]:
    return {"level": "warning", "message": {"text": row["message"]}, "locations": [_location(row, view)]}


def _result(row: dict[str, Any], codes: list[str], view: View) -> dict[str, Any]:
    text = f"{row['message']}\nhelp: {row['help']}" if row["help"] else row["message"]
    text += f"\nat {place_of(row)}" if row["cell"] is not None else ""
    result = {
        "ruleId": row["code"],
        "ruleIndex": codes.index(row["code"]),
        "level": row["severity"],
        "message": {"text": text},
        "locations": [_location(row, view)],
        "partialFingerprints": {"streamlint/v1": row["fingerprint"]},
        "properties": {key: row[key] for key in ("facts", "evidence", "related") if row[key]},
        "rank": row["rank"],
    }
    if run := row.get("run"):
        result["properties"]["run"] = run
        del result["rank"]  # in a run, what it costs there ranks a finding
        result |= {"rank": round(100 * run["cost"]["share"], 2)} if run["cost"] else {}
    if row["trail"]:
        result["codeFlows"] = [{"threadFlows": [{"locations": _flow(row, view)}]}]
    if row["fix"] and row["cell"] is None:  # a replacement is one of the file's own text
        result["fixes"] = [_fix(row["fix"])]
    if "baselined" in row:
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": row["baselined"]}] if row["baselined"] else []
    return result


def _flow(row: dict[str, Any], view: View) -> list[dict[str, Any]]:
    """The steps of the trail, then the offending operation."""
    steps = [{"location": _location(step, view, step["message"]), "importance": "important"} for step in row["trail"]]
    return [*steps, {"location": _location(row, view, row["message"]), "importance": "essential"}]


def _location(place: dict[str, Any], view: View, message: str = "") -> dict[str, Any]:
    start, end = place["location"], place["end_location"]
    region = {"startLine": start["row"], "startColumn": start["column"], "endLine": end["row"], "endColumn": end["column"]}
    if place["cell"] is not None:  # the columns of the JSON are nobody's
        first, last = (view.cells.file_row(place["filename"], place["cell"], point["row"]) for point in (start, end))
        region = {"startLine": first, "endLine": last}
    physical = {"physicalLocation": {"artifactLocation": _artifact(place["filename"]), "region": region}}
    return physical | ({"message": {"text": message}} if message else {})


def _artifact(file: str) -> dict[str, str]:
    path = repository_path(file)
    uri = as_uri(path)
    return {"uri": uri} if uri.startswith("file:") else {"uri": uri, "uriBaseId": "SRCROOT"}


def _fix(fix: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in fix["edits"]:
        start, end = edit["location"], edit["end_location"]
        region = {"startLine": start["row"], "startColumn": start["column"], "endLine": end["row"], "endColumn": end["column"]}
        changes.setdefault(edit["filename"], []).append({"deletedRegion": region, "insertedContent": {"text": edit["content"]}})
    return {
        "description": {"text": f"{fix['message']} ({fix['applicability']})"},
        "artifactChanges": [{"artifactLocation": _artifact(file), "replacements": edits} for file, edits in changes.items()],
    }
