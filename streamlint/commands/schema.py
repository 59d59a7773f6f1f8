"""The published JSON Schemas, made from the code: of the configuration, of the findings, and of what verify says.

``python -m streamlint.commands.schema configuration`` prints one; ``docs/schemas/`` holds them, and a test keeps them current.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from streamlint.config.settings import FLAGS, GLOBS, KEYS, PATHS, SELECTORS, WORDS, Settings
from streamlint.findings import LEVELS, Category, Severity
from streamlint.findings.grounds import Grounds, as_grounds
from streamlint.models import json_schema
from streamlint.support.addresses import CONFIGURATION
from streamlint.support.addresses import SCHEMAS as HOME
from streamlint.trace.results import STANDINGS

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
DRAFT = "http://json-schema.org/draft-07/schema#"
# Where the schema store serves a schema once it has taken it; editors ask for it by this name, and other schemas refer to it.
STORE = "https://json.schemastore.org/streamlint.json"
TELLS = {
    "select": "The rules to run: codes, names, prefixes of codes, or ALL.",
    "ignore": "Rules not to run.",
    "extend-select": "Rules to run besides those that are on.",
    "extend-ignore": "Rules not to run, besides those that are off.",
    "per-file-ignores": "Rules not to run on the files that a pattern matches; '!' before a pattern turns it round.",
    "exclude": "Patterns of what is left out, instead of the default ones.",
    "extend-exclude": "Patterns of what is left out besides.",
    "include": "Patterns of the files that are read when they are found under a folder.",
    "respect-gitignore": "Whether files that git ignores are left out.",
    "require-reasons": "Whether a suppression comment without a reason hides nothing.",
    "preview": "Whether to run preview rules, and rules in their wider form.",
    "baseline": "A file of known findings, which are not reported.",
    "cache-dir": "Where the cache lies.",
    "default-stream": "What stream 0 is in C++: as the build files say, the legacy default stream, or the thread's own.",
    "target-device": "Whether an unknown device may be a CUDA device, or is one.",
    "hidden-sync": "Which loops are looked at for hidden synchronization.",
    "evidence": "How much must be shown: that a hazard costs or breaks something where it stands, or only that it may.",
    "confidence": "How sure a finding must be to be told: at medium a third of such findings is expected to be real, at high two thirds.",
    "output-format": "How findings are shown.",
    "models": "Rows that say what functions of your own do; docs/models.md tells how they are written.",
    "extend": "A configuration file that this one begins with.",
}


def configuration() -> dict[str, Any]:
    """Of ``[tool.streamlint]`` and ``streamlint.toml``."""
    return {
        "$schema": DRAFT,
        "$id": STORE,
        "title": "streamlint",
        "description": "The settings of streamlint: [tool.streamlint] in pyproject.toml, or streamlint.toml\n" + CONFIGURATION,
        "type": "object",
        "additionalProperties": False,
        "properties": {key: {"description": TELLS[key], **_value(key)} for key in KEYS},
        "definitions": json_schema.definitions(),
    }


def _value(key: str) -> dict[str, Any]:
    words = {"type": "array", "items": {"type": "string"}}
    if key in SELECTORS or key in GLOBS:
        return words
    if key in FLAGS:
        return {"type": "boolean", "default": getattr(Settings(), key.replace("-", "_"))}
    if key in WORDS:
        return {"type": "string", "enum": list(WORDS[key]), "default": getattr(Settings(), key.replace("-", "_"))}
    if key in PATHS or key == "extend":
        return {"type": "string"}
    return {"type": "object", "additionalProperties": words} if key == "per-file-ignores" else json_schema.of_tables()


def findings() -> dict[str, Any]:
    """Of the JSON format of ``streamlint check``."""
    point = _closed(row={"type": "integer", "minimum": 1}, column={"type": "integer", "minimum": 1})
    text = {"type": "string"}
    cell = {"type": ["integer", "null"], "minimum": 1, "description": "The cell of a notebook, in which rows count; else null."}
    place: dict[str, Any] = {
        "filename": text,
        "cell": cell,
        "location": {"$ref": "#/definitions/point"},
        "end_location": {"$ref": "#/definitions/point"},
    }
    evidence = _closed(
        verdict={"enum": VERDICTS},
        level={"enum": ["rule", "template", "facts"]},
        platform=text,
        date=text,
        summary=text,
    )
    finding = _closed(
        code={"type": "string", "pattern": r"^SL\d{3}$"},
        name=text,
        category={"enum": [category.value for category in Category]},
        severity={"enum": [severity.value for severity in Severity]},
        message=text,
        **place,
        trail={"type": "array", "items": _closed(message=text, **place)},
        help=text,
        fix={"anyOf": [{"type": "null"}, {"$ref": "#/definitions/fix"}]},
        facts={"type": "object"},
        confidence={"enum": list(LEVELS)},
        rank={"type": "integer", "minimum": 0, "maximum": 100, "description": "How many of 100 such findings are expected to be real."},
        grounds={"anyOf": [{"type": "null"}, {"$ref": "#/definitions/grounds"}]},
        related={"type": "array", "items": text},
        evidence={"anyOf": [{"type": "null"}, {"$ref": "#/definitions/evidence"}]},
        url={"type": "string", "format": "uri"},
        fingerprint=text,
    )
    finding["properties"]["run"] = {"$ref": "#/definitions/run", "description": "With --profile, and of `streamlint trace`."}
    edits = {"type": "array", "items": _closed(content=text, **place), "minItems": 1}
    fix = _closed(applicability={"enum": ["safe", "unsafe", "display"]}, message=text, edits=edits)
    return {
        "$schema": DRAFT,
        "$id": f"{HOME}findings.json",
        "title": "streamlint findings, version 1",
        "description": "What `streamlint check --output-format json` writes. Rows and columns count from 1, ends are exclusive.",
        "type": "array",
        "items": {"$ref": "#/definitions/finding"},
        "definitions": {"point": point, "finding": finding, "fix": fix, "evidence": evidence, "grounds": _of_grounds(), **_of_costs()},
    }


def _of_grounds() -> dict[str, Any]:
    """What a finding rests on: the structure of the program around its place."""
    kinds: dict[str, type] = {name: type(value) for name, value in as_grounds(Grounds()).items()}
    forms: dict[type, Any] = {bool: {"type": "boolean"}, int: _COUNT, str: _TEXT}
    return _closed(**{name: forms[kind] for name, kind in kinds.items()})


def trace() -> dict[str, Any]:
    """Of the JSON format of ``streamlint trace``."""
    of_findings = findings()
    run = _closed(
        recording=_TEXT,
        origin={"enum": ["recorded", "kineto", "nsight", ""]},
        gpu=_TEXT,
        streamlint=_TEXT,
        processes={"type": "integer", "minimum": 1},
        notes={"type": "array", "items": _TEXT},
        rank_waits={
            "type": "array",
            "description": "How long GPUs waited in collectives for other ranks, and how long the GPU of the late one worked meanwhile.",
            "items": _closed(**_of_rank(), late=_closed(**_of_rank()), ns=_COUNT, worked_ns=_COUNT, collectives=_COUNT),
        },
        **dict.fromkeys(("wall_ns", "blocked_ns", "idle_ns", "threshold_ns"), _COUNT),
    )
    summary = _closed(findings=_COUNT, costing=_COUNT, cost_ns=_COUNT, share=_SHARE, stalls=_COUNT)
    stall = _closed(kind=_TEXT, reason=_TEXT, cost={"$ref": "#/definitions/cost"})
    finding = {"allOf": [{"$ref": "#/definitions/finding"}, {"required": ["run"]}]}
    return {
        "$schema": DRAFT,
        "$id": f"{HOME}trace.json",
        "title": "streamlint trace, version 1",
        "description": "What `streamlint trace --output-format json` writes. Times in ns, sizes in bytes, bandwidths in bytes a second.",
        **_closed(
            version={"const": 1},
            run=run,
            summary=summary,
            findings={"type": "array", "items": finding},
            stalls={"type": "array", "items": stall},
        ),
        "definitions": of_findings["definitions"],
    }


def _of_rank() -> dict[str, Any]:
    return {"process": {"type": "integer"}, "rank": {"type": ["integer", "null"]}}


def _of_costs() -> dict[str, Any]:
    place = _closed(filename=_TEXT, lines={"type": "array", "items": _COUNT}, function=_TEXT)
    counts = (
        "cost_ns",
        "calls",
        "idle_ns",
        "avoidable_ns",
        "blocked_ns",
        "median_ns",
        "largest_ns",
        "serialized_ns",
        "held_up_ns",
        "other_ranks_ns",
        "bytes",
    )
    cost = _closed(
        **place["properties"],
        **dict.fromkeys(("summary", "call", "kind", "operator", "source", "destination", "thread"), _TEXT),
        **dict.fromkeys((*counts, "driver_allocations"), _COUNT),
        share=_SHARE,
        gain_ns={"type": ["integer", "null"], "description": "An estimate; null where none can be given."},
        bandwidth={"type": ["number", "null"]},
        pinned_bandwidth={"type": ["number", "null"]},
        via={"type": "array", "items": place},
        process={"type": "integer"},
        ranks={"type": "array", "items": _closed(**_of_rank(), blocked_ns=_COUNT, other_ranks_ns=_COUNT)},
    )
    run = _closed(standing={"enum": list(STANDINGS)}, note=_TEXT, cost={"anyOf": [{"type": "null"}, {"$ref": "#/definitions/cost"}]})
    return {"cost": cost, "run": run}


VERDICTS = ["CONFIRMED", "REFUTED", "NOT OBSERVED", "INCONCLUSIVE", "UNSUPPORTED"]


def verify() -> dict[str, Any]:
    """Of the JSON format of ``streamlint verify`` without paths. With paths it writes findings."""
    missed = _closed(rule=_TEXT, case=_TEXT, api=_TEXT)
    whole = _closed(platform={"$ref": "#/definitions/platform"}, cases={"type": "array", "items": {"$ref": "#/definitions/case"}})
    whole["properties"]["not_run"] = {"type": "array", "items": missed, "description": "Of a run that was interrupted."}
    return {
        "$schema": DRAFT,
        "$id": f"{HOME}verify.json",
        "title": "streamlint verify, version 1",
        "description": "What `streamlint verify --output-format json` writes.",
        **whole,
        "definitions": _of_cases(),
    }


def matrix() -> dict[str, Any]:
    """Of the JSON format of ``streamlint verify --executor dask``."""
    cases, workers = {"type": "array", "items": {"$ref": "#/definitions/case"}}, {"type": "array", "items": _TEXT}
    there = _closed(platform={"$ref": "#/definitions/platform"}, workers=workers, cases=cases)
    row = _closed(rule=_TEXT, case=_TEXT, api=_TEXT, verdicts={"type": "object", "additionalProperties": {"enum": VERDICTS}})
    lost = _closed(worker=_TEXT, reason=_TEXT, not_run={"type": "integer", "minimum": 0})
    tables = {"platforms": there, "matrix": row, "lost": lost}
    return {
        "$schema": DRAFT,
        "$id": f"{HOME}verify-matrix.json",
        "title": "streamlint verify on a cluster, version 1",
        "description": "What `streamlint verify --executor dask --output-format json` writes: verdicts by platform, and who was lost.",
        **_closed(**{name: {"type": "array", "items": items} for name, items in tables.items()}),
        "definitions": _of_cases(),
    }


def _of_cases() -> dict[str, Any]:
    span = _closed(**{"from": {"type": "number"}, "to": {"type": "number"}, "what": _TEXT})
    lane = _closed(name=_TEXT, kind={"enum": ["host", "stream"]}, spans={"type": "array", "items": span})
    figures = {
        "type": "object",
        "description": "What was measured, by name. timeline: the last round, in ms.",
        "properties": {"timeline": {"type": "array", "items": {"$ref": "#/definitions/lane"}}, "failure": _TEXT},
    }
    case = _closed(
        rule={"type": "string", "pattern": r"^SL\d{3}$"},
        case=_TEXT,
        api={"enum": ["torch", "cupy", "numba", "cuda-python", "cuda"]},
        prediction=_TEXT,
        verdict={"enum": VERDICTS},
        reason=_TEXT,
        misuse={"$ref": "#/definitions/figures"},
        remedy={"$ref": "#/definitions/figures"},
        seconds={"type": "number", "minimum": 0},
    )
    packages = {"type": "object", "additionalProperties": _TEXT}
    platform = _closed(gpu=_TEXT, driver=_TEXT, cuda_runtime=_TEXT, python=_TEXT, streamlint=_TEXT, packages=packages)
    return {"case": case, "figures": figures, "lane": lane, "platform": platform}


def _closed(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(properties), "properties": properties}


SCHEMAS = {"configuration": configuration, "findings": findings, "verify": verify, "verify-matrix": matrix, "trace": trace}


def text_of(name: str) -> str:
    """A schema as its file holds it."""
    return json.dumps(SCHEMAS[name](), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text_of(sys.argv[1]))
