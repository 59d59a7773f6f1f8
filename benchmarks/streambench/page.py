"""Write docs/streambench.md from results/*.json and depth.json.

python -m benchmarks.streambench.page
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.streambench.score import Row, table
from benchmarks.streambench.tools import ROOT

RESULTS = Path(__file__).with_name("results")
PAGE = ROOT / "docs/streambench.md"
TOOLS = {
    "streamlint": "streamlint, all 40 rules",
    "streamlint-default": "streamlint, the rules that are on by default",
    "semgrep": "semgrep with `benchmarks/peers/semgrep.yml`",
    "torchfix": "TorchFix, all its rules",
    "ruff": "ruff, all its rules",
    "vllm": "vLLM's `check_gpu_sync_patterns.py`",
    "torch-preflight": "torch-preflight",
    "hotpath": "hotpath-ai, with its heuristics",
}
WATCHERS = {
    "csan": "CSAN, PyTorch's CUDA sanitizer (`TORCH_CUDA_SANITIZER=1`)",
    "vllm": "vLLM's run-time check (`gpu_sync_debug.py`, mode `warn`)",
    "memcheck": "compute-sanitizer memcheck (`--track-stream-ordered-races all`)",
    "initcheck": "compute-sanitizer initcheck",
    "racecheck": "compute-sanitizer racecheck",
    "cusan": "CuSan at 2e2a503 (Clang 14, CUDA 11.8)",
}
TITLES = {"micro": "micro", "hand": "written by hand", "blind": "blind", "quiet": "quiet"}
HEAD = """# StreamBench

A benchmark of hazards of CUDA streams in host code that anybody can run: generated pairs of a bad program and its repaired twin for every
rule, pairs written by hand, pairs by people who did not know the linter, and look-alikes that are right.
`benchmarks/streambench/README.md` says how cases are made and scored. In short: a case is found if a result of a fitting rule stands, to
the line, on an operation of the hazard or on a call between its operations, and a fitting result anywhere in the twin is a false alarm.

```console
$ python -m benchmarks.streambench run --tool streamlint
```

The templates were written by people who know streamlint, for its rules: other tools were made for other ends, and are listed to show how
much of this can be seen without knowing streams. The micro track shows how far a hazard is followed, not how often such code occurs:
[accuracy](accuracy.md) has figures of released packages.
"""
SETTINGS = """
In November 2026: ruff 0.17.6 `check --isolated --select ALL`, TorchFix 0.7.0 `--select ALL`, semgrep 1.185.0 with the three patterns of
`benchmarks/peers/semgrep.yml` (a read in a loop, a wait in a loop, a copy that asks not to block). The rules of ruff and TorchFix speak
of none of these hazards. semgrep's patterns do not tell a bad program from its twin: one matches the pinned copy as well as the other.

Also in November 2026, beside other work on the same two cores: torch-preflight 0.5.0 `check --format sarif` and hotpath-ai 0.1.0
`analyze --include-heuristics --format json`, both from PyPI; vLLM's `tools/pre_commit/check_gpu_sync_patterns.py` at commit 4a4c7c4b41,
newer than release 0.33.0, which lacks it (`CHECK_GPU_SYNC_PATTERNS=FILE python -m benchmarks.streambench run --tool vllm`). They see:

* torch-preflight and hotpath-ai tell of a loader that does not pin, where it is made (SL001: 17 and 20 of 20, and the pair by hand), and of
  few reads and waits that stand in the loop itself (2 of SL020 and 2 of SL021; 4 and 2). No twin of the micro track is flagged; hotpath-ai
  flags seven look-alikes. To torch-preflight a read of the loss in each step is right: one wait a step is fine, by its own choice.
* vLLM's linter looks for seven constructors of torch whose result is copied with `non_blocking=True` in the same function. The templates
  draw random numbers, so that it finds none. In the packages of the ledger it names 34 places, four of them in vLLM's own tests of its
  check. streamlint tells two of the others (flair, torchrec). Most of the rest upload a few numbers, which the driver stages without a
  wait: of nine that an earlier streamlint told, readers of the ledger said that they cost nothing. An array of a batch (catalyst,
  `data/loader.py:156`) is real where it is large, which nothing in view says: vLLM's linter tells it, streamlint does not.
* torch-preflight and hotpath-ai have rules that streamlint has no place for: graphs that are kept alive (TG001), gradients that are
  never zeroed (TG003), a loss that does not fit its activation, loaders without workers, no `torch.compile`, the peak of memory.
"""
MISSED = """\
The selection grew from 2,542 to 7,575 pairs when 521 templates and 313 ways were added. Of these 6,685 (88.3 %) were found, and 20 twins
were flagged, before what the new ones had shown was mended; 7,042 (93.0 %) and 4 behind it (30 November 2026), 7,339 (96.9 %) and 1 when
what 21 templates had shown that were missed in nearly all ways was mended (1 December 2026), 7,370 (97.3 %) and none behind kernels that
work on mapped memory and gradients that are set to None (the same day). The row of all rules above is of these; the
other rows are of the earlier selection and were not measured anew.

What is missed are single ways of 127 templates, no template in all of its ways; most are containers and objects that carry the memory.

The templates were used to find mechanisms that the engine lacked. So these figures say that hazards are followed through such code, not
how often a new program is understood.
"""
BLIND = """
## streamlint on the blind track

These programs were written for this project by people who did not know the linter, and before it was mended on them. So what it finds in
them today is no first sight. At first sight it found 140 of 206 of 2026-11-29: 54 of 86 in one half of the first four files, where 8 of the
86 twins were flagged; 31 of 42 in the file that was written last of these, where none was; and 55 of 78 in the three files that were
written after that (22 of 26 in C++, 12 of 24 races and 21 of 28 stalls in Python), where 6 of the 78 were. The other half of the first four
files was looked at first. Those figures are another scorer's, from before ten arguable pairs were left out.

Of the 90 pairs of 2026-11-30 (`third-*.yml`) it found 58 at first sight, 28 of 45 in Python and 30 of 45 in C++, and flagged five twins.
It was mended on these; then 60 further pairs were written (`fourth-*.yml`), of which it found 47 at first sight, 22 of 30 in Python and 25
of 30 in C++, and flagged five twins again: three of SL008, one each of SL001 and SL005; two of them were mended since.

It was mended on these, too. Of 60 pairs that were written then (`fifth-*.yml`) it found 45 at first sight, 22 of 30 in Python and 23 of 30
in C++, and flagged three twins. Mended on these it found 34 of 48 others (`sixth-*.yml`; 18 of 24 and 16 of 24; three twins flagged) that
nobody had looked at: before, 33, with four twins. So what is built for the misses of one set finds little in the next one. Of 48 pairs
after these (`seventh-*.yml`) it found 42 at first sight, 20 of 24 in Python and 22 of 24 in C++, and flagged four twins; with what 521
further templates and 313 further ways had shown mended, 42 and three.

Of 48 pairs after these (`eighth-*.yml`) it found 36 at first sight, 19 of 24 in Python and 17 of 24 in C++, and flagged one twin. What the
misses of the sets before had shown was mended then, which found none of the others; mended on what this set shows it finds 38, two more at
another line than the label's, and flags none.

The authors of 48 further pairs (`ninth-*.yml`) looked for what had not been tried: it found 16 at first sight and flagged three twins;
mended on these, 27 and none. Of 48 that looked for what the nine before lack (`tenth-*.yml`) it found 17, 9 of 24 in Python and 8 of 24
in C++, and flagged twelve twins, seven and five: in most of them the bad and the right program looked the same to it. Mended on these it
finds 19, and flags two.

The 48 pairs of the last set (`eleventh-*.yml`) are each written after a public thread, as the threads came: a bug or stall that somebody
has met, in a program of the same structure. It found 29 at first sight (60 %), 13 of 24 in Python and 16 of 24 in C++, and flagged no twin.
Mended on these it finds 42; of the other six three are told at another place, two by a neighbouring rule, one is left to an option.
"""
DEPTH = """
## Depth and size

![Recall over helpers in a chain, files and irrelevant branches; time over size](images/streambench-depth.svg)

Recall of streamlint with all rules over the templates whose second part may stand in a function, each at every point, and processor time
over the lines of one project made of generated programs.
"""


def rows(record: Mapping[str, Any], track: str, group: str) -> list[Row]:
    """The counts of a group of a record."""
    return [Row(name, *counts) for name, counts in record["tracks"][track][group].items()]


def total(name: str, record: Mapping[str, Any], track: str) -> Row:
    """The counts of a track of a record, together."""
    sums = [sum(each) for each in zip(*record["tracks"][track]["hazard"].values(), strict=True)]
    return Row(name, *sums)


def page(records: Mapping[str, Mapping[str, Any]], depth: Mapping[str, Any], oracles: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The lines of the page."""
    yield HEAD
    yield "## Tools\n"
    known = {tool: records[tool] for tool in TOOLS if tool in records}
    for track, title in TITLES.items():
        yield from table(title, [total(TOOLS[tool], record, track) for tool, record in known.items() if record["tracks"].get(track)])
        yield ""
    seconds = ", ".join(f"{TOOLS[tool]} {record['seconds']}" for tool, record in known.items())
    yield f"Seconds (streamlint with all rules 14 processes on 16 cores, the others two shared cores): {seconds}."
    yield SETTINGS
    own = records["streamlint"]
    yield "## streamlint on the micro track\n"
    yield MISSED
    yield from table("hazard", rows(own, "micro", "hazard"))
    for group in ("api", "way"):
        yield ""
        yield from table(group.replace("api", "API"), rows(own, "micro", group))
    yield BLIND
    yield from table("hazard", rows(own, "blind", "hazard"))
    yield DEPTH
    yield from _depth(depth)
    yield from _watched(records)
    yield from _oracles(oracles)


def _watched(records: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What the tools say that watch the programs while they run."""
    record = records.get("dynamic")
    if record is None:
        return
    where = record["platform"]
    yield "## Tools that watch a running program\n"
    yield f"{where['gpu']}, driver {where['driver']}, {record['date']}; compute-sanitizer: {record['compute-sanitizer']}. Each program"
    yield "runs once in each version; a tool tells them apart where it speaks in the bad one alone (`benchmarks/streambench/dynamic.py`).\n"
    yield "| tool | programs | told apart | spoke in both | silent | did not end | hazards told apart |"
    yield "|---|---:|---:|---:|---:|---:|---|"
    for tool, title in WATCHERS.items():
        if tool in record["tools"]:
            yield _watcher(title, record["tools"][tool]["cases"])
    yield ""


def _watcher(title: str, cases: Mapping[str, Any]) -> str:
    known = [(hazard, bad, clean) for hazard, bad, clean in cases.values() if isinstance(bad, int) and isinstance(clean, int)]
    apart = Counter(hazard for hazard, bad, clean in known if bad and not clean)
    both, silent = (sum(bool(bad) == is_told == bool(clean) for _, bad, clean in known) for is_told in (True, False))
    hazards = ", ".join(f"{hazard} {number} of {sum(each[0] == hazard for each in known)}" for hazard, number in sorted(apart.items()))
    return f"| {title} | {len(cases)} | {apart.total()} | {both} | {silent} | {len(cases) - len(known)} | {hazards or '-'} |"


def _depth(depth: Mapping[str, Any]) -> Iterator[str]:
    for way, title in (("depth", "helpers"), ("files", "files"), ("branches", "branches")):
        points = [row[0] for row in depth[way]["Python"]]
        yield f"| {title} | {' | '.join(map(str, points))} |"
        yield f"|---|{'---:|' * len(points)}"
        for language, told in depth[way].items():
            yield f"| {language}, of {told[0][2]} | {' | '.join(str(row[1]) for row in told)} |"
        yield ""


def _oracles(oracles: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if not oracles:
        return
    yield "## What a GPU says\n"
    for record in oracles.values():
        where = record["platform"]
        yield f"{where['gpu']}, driver {where['driver']}, {record['date']}. *race*: other values than the twin with the same seed; *stall*:"
        yield "the program came back only after the gate had opened; *calls*: more waits than the twin; *error*: a failure. A case whose"
        yield "bad program shows nothing, or whose twin shows it too, is latent.\n"
        yield "| case | oracle | bad | twin | of |"
        yield "|---|---|---:|---:|---:|"
        for name, told in sorted(record["cases"].items()):
            if "failure" in told:
                yield f"| {name} | {told['oracle']} | - | - | not run: {told['failure'][:60]} |"
            else:
                yield f"| {name} | {told['oracle']} | {told['bad']} | {told['clean']} | {told['runs']} |"


def text() -> str:
    """The page of the records that are kept."""
    records = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")}
    oracles = {name: records.pop(name) for name in sorted(records) if name.startswith("oracle-")}
    depth = json.loads((RESULTS.parent / "depth.json").read_text(encoding="utf-8"))
    return "\n".join(page(records, depth, oracles)).rstrip() + "\n"


def main() -> int:
    """Write the page."""
    PAGE.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
