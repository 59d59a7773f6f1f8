"""Costs and answers as plain data: the JSON of ``streamlint trace``, and what other formats carry of a cost."""

from __future__ import annotations

from typing import Any

from streamlint import __version__
from streamlint.findings import Report
from streamlint.report import View as FindingsView
from streamlint.report.entries import entries
from streamlint.trace.prices import price
from streamlint.trace.rendering.view import View
from streamlint.trace.rendering.words import part, summary
from streamlint.trace.results import Cost, Joined, Judged, Place, Unnamed

VERSION = 1


def document(view: View) -> dict[str, Any]:
    """The whole answer."""
    joined = view.joined
    return {
        "version": VERSION,
        "run": run(view),
        "summary": totals(joined),
        "findings": [row for one in joined.judged for row in _rows(view, one)],
        "stalls": [stall(joined, one) for one in joined.unnamed],
    }


def run(view: View) -> dict[str, Any]:
    """What was recorded."""
    joined = view.joined
    costs = joined.costs
    return {
        "recording": view.recording,
        "origin": costs.origin,
        "gpu": costs.gpu,
        "streamlint": __version__,
        "processes": view.joined.processes,
        "wall_ns": costs.wall,
        "blocked_ns": costs.blocked,
        "idle_ns": costs.idle,
        "threshold_ns": view.joined.border,
        "rank_waits": [
            {
                **_rank(joined, one.process),
                "late": _rank(joined, one.late),
                "ns": one.time,
                "worked_ns": one.worked,
                "collectives": one.collectives,
            }
            for one in costs.rank_waits
        ],
        "notes": list(costs.notes),
    }


def totals(joined: Joined) -> dict[str, Any]:
    """The figures of the last line."""
    return {
        "findings": len(joined.judged),
        "costing": sum(one.standing == "COSTS" for one in joined.judged),
        "cost_ns": joined.named,
        "share": _rounded(part(joined, joined.named)),
        "stalls": len(joined.unnamed),
    }


def judgement(joined: Joined, one: Judged) -> dict[str, Any]:
    """A finding's standing and cost."""
    return {"standing": one.standing, "note": one.note, "cost": cost_of(joined, one.cost) if one.cost else None}


def stall(joined: Joined, one: Unnamed) -> dict[str, Any]:
    """A stall without a finding."""
    return {"kind": one.kind, "reason": one.reason, "cost": cost_of(joined, one.cost)}


def cost_of(joined: Joined, cost: Cost) -> dict[str, Any]:
    """A cost: times in ns, sizes in bytes, bandwidths in bytes per second."""
    return {
        **_place(cost.place),
        "summary": summary(joined, cost),
        "cost_ns": price(cost),
        "share": _rounded(part(joined, price(cost))),
        "call": cost.call,
        "kind": cost.kind,
        "operator": cost.operator,
        "calls": cost.calls,
        "idle_ns": cost.idle,
        "avoidable_ns": cost.avoidable,
        "gain_ns": cost.gain,
        "blocked_ns": cost.blocked,
        "median_ns": cost.median,
        "largest_ns": cost.largest,
        "serialized_ns": cost.serialized,
        "held_up_ns": cost.held_up,
        "other_ranks_ns": cost.other_ranks,
        "ranks": [{**_rank(joined, one.process), "blocked_ns": one.blocked, "other_ranks_ns": one.waited} for one in cost.of_ranks],
        "bytes": cost.bytes,
        "bandwidth": cost.bandwidth,
        "pinned_bandwidth": cost.pinned_bandwidth,
        "source": cost.source,
        "destination": cost.destination,
        "driver_allocations": cost.driver_allocations,
        "via": [_place(place) for place in cost.via],
        "thread": cost.thread,
        "process": cost.process,
    }


def _rank(joined: Joined, process: int) -> dict[str, Any]:
    """A process, and its rank where that is known."""
    return {"process": process, "rank": joined.costs.ranks.get(process)}


def _rows(view: View, one: Judged) -> list[dict[str, Any]]:
    """A finding as `check` writes it, with what the run says of it."""
    report = Report(findings=[one.finding], texts=view.report.texts)
    return entries(FindingsView(report, evidence=view.evidence, costs={one.finding: judgement(view.joined, one)}))


def _place(place: Place) -> dict[str, Any]:
    return {"filename": place.file, "lines": list(place.lines), "function": place.function}


def _rounded(value: float) -> float:
    return round(value, 4)
