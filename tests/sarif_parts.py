"""The constraints of the SARIF 2.1.0 schema (OASIS, errata 01) on those parts that we write, as a JSON Schema.

Written by hand: names, required properties, enumerations, and the least numbers and lengths of each object are those of the standard's
sections, which stand beside them. Objects are closed over what we write, so that a new property has to be looked up first.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
LINE = {"type": "integer", "minimum": 1}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/definitions/{name}"}


def array(items: dict[str, Any], least: int = 0, unique: bool = False) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "uniqueItems": unique}


def closed(required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required.split(), "properties": properties}


LEVEL = {"enum": ["none", "note", "warning", "error"]}  # 3.27.10
PARTS = {
    # 3.8: a property bag is open; its tags are unique strings.
    "properties": {"type": "object", "properties": {"tags": array(TEXT, unique=True)}},
    # 3.11, 3.12: a message has a text or the identifier of one.
    "message": {**closed("", text=TEXT, markdown=TEXT, id=TEXT), "anyOf": [{"required": ["text"]}, {"required": ["id"]}]},
    "texts": closed("text", text=TEXT, markdown=TEXT),
    # 3.4: a relative reference has a base where it has an identifier of one.
    "artifactLocation": closed("", uri={**TEXT, "format": "uri-reference"}, uriBaseId=TEXT, description=ref("message")),
    # 3.30: lines or offsets, and we have none of the latter.
    "region": closed("startLine", startLine=LINE, startColumn=LINE, endLine=LINE, endColumn=LINE),
    # 3.29: an artifact or an address, and we have none of the latter.
    "physicalLocation": closed("artifactLocation", artifactLocation=ref("artifactLocation"), region=ref("region")),
    # 3.28
    "location": closed("", physicalLocation=ref("physicalLocation"), message=ref("message")),
    # 3.36 to 3.38
    "threadFlowLocation": closed("", location=ref("location"), importance={"enum": ["important", "essential", "unimportant"]}),
    "threadFlow": closed("locations", locations=array(ref("threadFlowLocation"), 1)),
    "codeFlow": closed("threadFlows", threadFlows=array(ref("threadFlow"), 1)),
    # 3.35
    "suppression": closed(
        "kind", kind={"enum": ["inSource", "external"]}, status={"enum": ["accepted", "underReview", "rejected"]}, justification=TEXT
    ),
    # 3.55 to 3.57
    "replacement": closed("deletedRegion", deletedRegion=ref("region"), insertedContent=closed("", text=TEXT)),
    "artifactChange": closed(
        "artifactLocation replacements", artifactLocation=ref("artifactLocation"), replacements=array(ref("replacement"), 1)
    ),
    "fix": closed("artifactChanges", description=ref("message"), artifactChanges=array(ref("artifactChange"), 1, unique=True)),
    # 3.27
    "result": closed(
        "message",
        ruleId=TEXT,
        ruleIndex={"type": "integer", "minimum": -1},
        level=LEVEL,
        rank={"type": "number", "minimum": -1, "maximum": 100},
        message=ref("message"),
        locations=array(ref("location")),
        partialFingerprints={"type": "object", "additionalProperties": TEXT},
        codeFlows=array(ref("codeFlow")),
        suppressions=array(ref("suppression"), unique=True),
        fixes=array(ref("fix"), unique=True),
        properties=ref("properties"),
    ),
    # 3.58
    "notification": closed("message", level=LEVEL, message=ref("message"), locations=array(ref("location"), unique=True)),
    # 3.20
    "invocation": closed(
        "executionSuccessful", executionSuccessful={"type": "boolean"}, toolExecutionNotifications=array(ref("notification"))
    ),
    # 3.49, 3.50
    "rule": closed(
        "id",
        id=TEXT,
        name=TEXT,
        shortDescription=ref("texts"),
        fullDescription=ref("texts"),
        help=ref("texts"),
        helpUri={**TEXT, "format": "uri"},
        defaultConfiguration=closed("", level=LEVEL, enabled={"type": "boolean"}),
        properties=ref("properties"),
    ),
    # 3.19
    "driver": closed(
        "name",
        name=TEXT,
        informationUri={**TEXT, "format": "uri"},
        version=TEXT,
        semanticVersion=TEXT,
        rules=array(ref("rule"), unique=True),
    ),
    # 3.14, 3.18
    "run": closed(
        "tool",
        tool=closed("driver", driver=ref("driver")),
        columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        originalUriBaseIds={"type": "object", "additionalProperties": ref("artifactLocation")},
        invocations=array(ref("invocation")),
        results=array(ref("result")),
    ),
}
# 3.13
LOG = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    **closed("version runs", **{"$schema": {**TEXT, "format": "uri"}}, version={"enum": ["2.1.0"]}, runs=array(ref("run"))),
    "definitions": PARTS,
}
