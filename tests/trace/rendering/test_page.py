"""The page: one file with nothing to fetch, readable without its script, and drawn by it in a browser."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fake_answers import trace, view

from streamlint.trace.rendering import render, timeline

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
VOID = {"meta", "br"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class _Reader(html.parser.HTMLParser):
    """Elements that are closed in order, their attributes, and the text outside of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.data = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.data = self.data or data
        elif self.open and self.open[-1] != "style":
            self.text.append(data.strip())


def read(text: str) -> _Reader:
    reader = _Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


def drawn(page: str) -> dict[str, Any]:
    """What the page draws."""
    data: dict[str, Any] = json.loads(read(page).data)
    return data


def browsed(page: str, place: int) -> _Reader:
    """The page as it is once its script has run with a place chosen; without a browser as it was made, with that place marked."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        return read(page)
    Path("page.html").write_text(page)
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"file://{Path('page.html').resolve()}#{place}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    reader = read(done.stdout)
    (body,) = (attributes for tag, attributes in reader.tags if tag == "body")
    count = sum(len(lane["from"]) for lane in drawn(page)["lanes"])
    assert (body["class"], body["data-drawn"]) == ("scripted", str(count))
    pressed = [attributes["data-cost"] for tag, attributes in reader.tags if attributes.get("aria-pressed") == "true"]
    on = [attributes["data-cost"] for tag, attributes in reader.tags if tag == "article" and "on" in (attributes.get("class") or "")]
    assert (pressed, on) == ([str(place - 1)], [str(place - 1)])
    assert re.search(r"\d+ of 10 · \d", " ".join(reader.text))
    return reader


def test_one_file_with_nothing_to_fetch() -> None:
    page = render("html", view(Path()))
    assert re.search(r"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-[\w+/]{43}='", page)
    assert not re.search(r"@import|<link|<img|<iframe|\bsrc=|url\(|fetch\(|XMLHttp", page)
    assert set(re.findall(r"https?://[\w.]+", page)) == {"https://streamlint.readthedocs.io"}


def test_all_is_said_in_text() -> None:
    reader = read(render("html", view(Path())))
    text = " ".join(reader.text)
    parts = ("1 of 5 findings costs 1.6 % of the run", "train.py:8", "total += loss.item()  # <b>", "the host waits <here>")
    assert [part for part in (*parts, "910 µs (1.6 %)", "no rule reports <this>", "half of it could not be read") if part not in text] == []
    assert [part for part in reader.text if part.startswith(("CHEAP:", "NOT REACHED:", "RACED ONLY:"))] == [
        "CHEAP: 1",
        "NOT REACHED: 2",
        "RACED ONLY: 1",
    ]


@pytest.mark.parametrize("place", [1, 2])
def test_in_a_browser(place: int) -> None:
    """The script runs under the page's own policy, draws each event, and shows the place that the address names."""
    reader = browsed(render("html", view(Path())), place)
    assert "train.py:8" in " ".join(reader.text)


def test_ten_thousand_events_in_a_browser() -> None:
    page = render("html", view(Path(), trace(kernels=500)))
    assert 10_000 < sum(len(lane["from"]) for lane in drawn(page)["lanes"]) < 11_000
    assert len(page) < 400_000
    browsed(page, 1)


def test_an_answer_without_costs() -> None:
    empty = view(Path())
    empty.joined.judged, empty.joined.unnamed = [], []
    page = render("html", empty)
    assert '<body class="empty">' in page
    assert drawn(page)["costs"] == []


def test_lanes_and_occurrences() -> None:
    data = drawn(render("html", view(Path())))
    assert [(lane["name"], lane["kind"]) for lane in data["lanes"]] == [
        ("main thread", "host"),
        ("default stream", "stream"),
        ("GPU idle", "gap"),
    ]
    second, first = data["costs"]
    assert [len(cost["occurrences"]) for cost in (first, second)] == [10, 10]
    assert [data["places"][number][:2] for number in first["places"]] == [["train.py", [8]]]
    start, end, weight = first["occurrences"][0]
    assert (end - start, weight) == (3_101_000, 3_001_000)  # 0.1 ms of waiting, then the gap
    assert max(data["overview"]["gpu"]) == 100


def test_of_a_long_run_the_surroundings_of_what_cost_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST", 200)
    data = drawn(render("html", view(Path(), trace(rounds=200))))
    assert 50 < sum(len(lane["from"]) for lane in data["lanes"]) < 260
    assert data["windows"][0][0] > 0 or data["windows"][-1][1] < data["wall"]
    for lane in data["lanes"]:
        for start, length in zip(lane["from"], lane["length"], strict=True):
            assert any(begin <= start + length and start <= end for begin, end in data["windows"])


def test_text_of_a_recording_is_no_markup() -> None:
    odd = view(Path())
    odd.recording = "</script><img src=x>.slt"
    odd.trace.works[0].name = "</script><b>"
    page = render("html", odd)
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert "&lt;/script&gt;&lt;img src=x&gt;.slt" in page
