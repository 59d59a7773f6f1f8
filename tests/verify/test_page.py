"""The HTML page: one file, nothing to fetch, well formed, and what it says."""

from __future__ import annotations

import html.parser
import re
from typing import Any

import pytest

from streamlint.verify import page

pytest.importorskip("jinja2")

PLATFORM = {"gpu": "Fake <GPU>", "driver": "1.2", "cuda_runtime": "13.0", "python": "3.12", "packages": {"cupy": "14.2"}}
VOID = {"meta", "link", "br", "img", "input", "hr"}


def _span(start: float, end: float, what: str) -> dict[str, Any]:
    return {"from": start, "to": end, "what": what}


def _lanes(end: float, what: str = "the program's call") -> list[dict[str, Any]]:
    return [
        {"name": "host thread", "kind": "host", "spans": [{"from": 0.5, "to": end, "what": what}]},
        {"name": "gated stream", "kind": "stream", "spans": [_span(0.0, 100.0, "gate"), _span(100.0, 101.0, "work")]},
    ]


def _case(**more: Any) -> dict[str, Any]:
    return {
        "rule": "SL003",
        "case": "cuda_free_in_loop",
        "api": "cupy",
        "prediction": "host waits for the device",
        "verdict": "CONFIRMED",
        "reason": "slope 1.00 & <b>",
        "misuse": {"gate_ms": [20.0, 120.0], "timeline": _lanes(100.5)},
        "remedy": {"gate_ms": [20.0, 120.0], "timeline": _lanes(1.0)},
        "seconds": 0.8,
        **more,
    }


class _Reader(html.parser.HTMLParser):
    """Elements that are closed in order, ids, and the text of each element."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.used: set[str] = set()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if identity := found.get("id"):
            self.ids.append(identity)
        self.used |= set((found.get("aria-labelledby") or "").split()) | {(found.get("href") or "#").removeprefix("#")} - {""}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _read(text: str) -> _Reader:
    reader = _Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


def test_one_file_with_nothing_to_fetch() -> None:
    text = page.render(PLATFORM, [_case()])
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|@import|<script|<link|<img|src=", text)
    assert set(re.findall(r"url\(([^)]*)\)", text)) == {"#hatch"}


def test_well_formed_and_named() -> None:
    reader = _read(page.render(PLATFORM, [_case(), _case(api="torch"), _case(rule="SL005", case="gone")], ["busy"]))
    assert len(reader.ids) == len(set(reader.ids))
    assert reader.used <= set(reader.ids)
    drawings = [attributes for tag, attributes in reader.tags if tag == "svg" and attributes.get("aria-hidden") != "true"]
    assert drawings
    assert all(attributes.get("role") == "img" and attributes.get("aria-label") for attributes in drawings)
    assert [tag for tag, _ in reader.tags if tag in ("h1", "h2", "h3")][:3] == ["h1", "h2", "h3"]


def test_light_and_dark() -> None:
    text = page.render(PLATFORM, [_case()])
    assert "@media (prefers-color-scheme: dark)" in text
    assert '<meta name="viewport"' in text


def test_what_programs_and_platforms_say_is_text() -> None:
    text = page.render(PLATFORM, [_case()])
    assert "Fake &lt;GPU&gt;" in text
    assert "slope 1.00 &amp; &lt;b&gt;" in text


def test_misuse_and_remedy_on_one_scale() -> None:
    drawn = page._drawings({"misuse": {"timeline": _lanes(100.5)}, "remedy": {"timeline": _lanes(1.0)}})
    misuse, remedy = (drawn[side].lanes[0].bars[0] for side in ("misuse", "remedy"))
    assert (misuse.left, misuse.width) == (0.5, 99.01)
    assert (remedy.left, remedy.width) == (0.5, 0.5)
    assert [bar.kind for bar in drawn["misuse"].lanes[1].bars] == ["gate", "work"]
    assert drawn["misuse"].ticks == drawn["remedy"].ticks
    assert [text for _, text, _ in drawn["misuse"].ticks] == ["0 ms", "50", "100 ms"]
    assert drawn["remedy"].text.startswith("host thread: the program's call, 0.5 to 1.0 ms. gated stream: gate, 0.0 to 100.0 ms")


def test_what_went_wrong_has_a_colour_of_its_own() -> None:
    hangs, wrong = "the program's call: does not return", "the program's call: a wrong value"
    for what, kind in ((hangs, "hangs"), (wrong, "wrong")):
        assert page.drawing(_lanes(5.0, what), 0.0, 101.0).lanes[0].bars[0].kind == kind


def test_costs_are_dots() -> None:
    text = page.render(PLATFORM, [_case(misuse={"ms": [3.0, 4.0, 2.0]}, remedy={"ms": [1.0] * 3})])
    assert text.count('class="dot"') == 6
    assert "misuse: median 3 ms of 3 runs" in text


def test_both_programs_with_what_differs() -> None:
    text = page.render(PLATFORM, [_case()])
    assert text.count('class="found"') == 1
    assert "misuse: SL003" not in text.replace("misuse: SL003 ", "")  # the marker is the tests' business
    assert 'class="changed"' in text


def test_the_marker_of_the_misuse_is_no_difference() -> None:
    programs = page._programs({"rule": "SL001", "case": "pageable_download", "api": "torch"})
    assert [line.strip() for kind, line in programs["remedy"] if kind] == ["host = torch.empty(count, pin_memory=True)"]
    assert [line.strip() for kind, line in programs["misuse"] if kind == "found"] == ["host.copy_(scores, non_blocking=True)"]


def test_evidence_without_a_timeline_or_of_another_release() -> None:
    _read(page.render({}, [_case(rule="SL777", case="gone", misuse={}, remedy={}, verdict="REFUTED")]))


def test_facts_and_findings() -> None:
    case = _case(facts={"bytes": 64}, findings=[{"file": "src/a.py", "row": 3, "message": "copy <x>"}])
    text = page.render(PLATFORM, [case])
    assert "bytes 64" in text
    assert "<code>src/a.py:3</code> copy &lt;x&gt;" in text
