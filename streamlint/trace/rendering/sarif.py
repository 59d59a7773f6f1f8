"""SARIF 2.1.0: the findings with costs as properties and ranks; run and stalls are properties of the SARIF run."""

from __future__ import annotations

import json

from streamlint.report import View as FindingsView
from streamlint.report import sarif
from streamlint.trace.rendering.data import judgement, run, stall
from streamlint.trace.rendering.view import View


def render(view: View) -> str:
    """One log with one run."""
    joined = view.joined
    costs = {one.finding: judgement(joined, one) for one in joined.judged}
    log = sarif.log(FindingsView(view.report, evidence=view.evidence, costs=costs))
    log["runs"][0]["properties"] = {"trace": {**run(view), "stalls": [stall(joined, one) for one in joined.unnamed]}}
    return json.dumps(log, indent=2, default=str) + "\n"
