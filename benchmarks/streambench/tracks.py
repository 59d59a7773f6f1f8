"""The tracks: generated cases, those written by hand or without knowing the linter, and look-alikes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from benchmarks.streambench import fixes
from benchmarks.streambench.cases import BAD, CLEAN, SEED, Case, cases, places
from benchmarks.streambench.pieces import BenchError, lines_of

WRITTEN = {name: Path(__file__).with_name(name) for name in ("hand", "blind", "quiet")}
OWN = ("micro", *WRITTEN)
TRACKS = (*OWN, "fixes")


def read(tracks: Sequence[str] = OWN, seed: int = SEED, mirrors: Path | None = None, every_way: bool = False) -> list[Case]:
    """The cases of some tracks; ``every_way``: no sample of the generated ones. Real fixes want a folder of clones: of those that are not
    there, nothing is said."""
    found: list[Case] = []
    for track in tracks:
        if track == "micro":
            found += cases(seed, every_way=every_way)
        elif track == "fixes":
            if mirrors is None:
                raise BenchError("the track fixes wants clones of the repositories: --mirrors DIR")
            found += fixes.cases(mirrors)
        else:
            found += written(WRITTEN[track], track)
    return found


def written(folder: Path, track: str) -> Iterator[Case]:
    """Cases of a track that are written by hand: lists in YAML files, with the programs as text and marks as in templates."""
    for path in sorted(folder.glob("*.yml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            try:
                yield _case(entry, str(entry["name"]), track)
            except (KeyError, TypeError, ValueError) as error:
                raise BenchError(f"{path.name}: {error!r}") from None


def _case(entry: dict[str, object], name: str, track: str) -> Case:
    files = entry["files"]
    if not isinstance(files, dict):
        raise TypeError("files are a table of texts by name")
    lines = {file: lines_of(text) for file, text in files.items()}
    versions = {version: {file: _text(found, version) for file, found in lines.items()} for version in (BAD, CLEAN)}
    bad = {file: [line for line in found if line.only != "good"] for file, found in lines.items()}
    marks, links = places(bad)
    if track == "quiet":
        versions[BAD] = {}
    elif not marks:
        raise ValueError("no line is marked")
    look = entry.get("look", {})
    return Case(
        name, track, str(entry["hazard"]), str(entry["api"]), str(entry.get("way", "hand")), str(entry["why"]),
        versions[BAD], versions[CLEAN], marks, links, functions=int(look.get("functions", 1)) if isinstance(look, dict) else 1,
        oracle=str(entry.get("oracle", "")), source=str(entry.get("source", "")),
    )  # fmt: skip


def _text(lines: Sequence[object], version: str) -> str:
    other = "good" if version == BAD else "bad"
    return "".join(f"{line.text}\n" for line in lines if line.only != other)  # type: ignore[attr-defined]
