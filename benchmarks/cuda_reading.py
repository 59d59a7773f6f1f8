"""How much of real CUDA C++ the front end reads: launches and calls that a text scan sees, against what is lowered and run.

    python benchmarks/cuda_reading.py [--corpus DIR] [NAME…] [--also DIR…]     measure, update cuda_reading.json, print a table
    python benchmarks/cuda_reading.py --missed [NAME…]                         print each place that was not read, write nothing

Columns: `launches` and `calls` of host code outside of comments, strings, kernels and `#define` bodies, and how many of them became
operations of the program; `macro uses`: uses of macros whose bodies launch or call, and how many gave an operation; `met`: launches that
some run came by; `stream known`: launches (of libraries too) whose stream the interpreter knows, as coverage.py counts them.
Code for other vendors, and branches that no build for NVIDIA GPUs compiles, is counted apart (`left out`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus import CorpusError, default_folder, read_pins
from cuda_text import Place, Scan, scan, uses

if TYPE_CHECKING:
    from streamlint.interpreter.index import Program
    from streamlint.options import Source
    from streamlint.program import Module

RECORD = Path(__file__).with_name("cuda_reading.json")


@dataclass
class Row:
    """The figures of one package."""

    files: int = 0
    bytes: int = 0
    launches: int = 0
    launches_read: int = 0
    calls: int = 0
    calls_read: int = 0
    uses: int = 0
    uses_read: int = 0
    left_out: int = 0
    met: int = 0
    streams: int = 0
    streams_known: int = 0
    crashes: list[str] = field(default_factory=list)
    seconds: float = 0.0


# In the child: one tree


def measure(tree: Path, only_front_end: bool) -> tuple[Row, list[str]]:
    """The figures of a tree, and a line for each place that was not read."""
    from streamlint import models
    from streamlint.frontends import UnreadableSource
    from streamlint.frontends.cuda import lower
    from streamlint.frontends.cuda_headers import Headers
    from streamlint.interpreter.index import Program

    row, program = Row(), Program()
    sources = list(sources_of(tree))
    headers = Headers({source.path: source.text for source in sources})
    for source in sources:
        start = time.process_time()
        try:
            module = lower(source.path, source.text, headers)
        except UnreadableSource:
            continue
        except Exception as error:
            row.crashes.append(f"{shown(source.path, tree)}: {type(error).__name__}: {error}")
            continue
        row.seconds += time.process_time() - start
        row.files += 1
        row.bytes += len(source.text)
        program.add(module, models.builtin("cuda"))
    missed = _held_against_text(program, row, tree)
    if not only_front_end:
        missed += _run(program, row, tree)
    row.seconds = round(row.seconds, 2)
    return row, missed


def sources_of(tree: Path) -> Iterator[Source]:
    """The C++ of a tree that a lint run would look at."""
    from streamlint.config import Resolver, Settings
    from streamlint.files import discover
    from streamlint.options import Source
    from streamlint.reading import Unreadable, decode, read_bytes
    from streamlint.screening import is_generated
    from streamlint.triggers import relevant

    for file in discover([tree], Resolver(Settings(root=tree, respect_gitignore=False))).files:
        if file.language != "cuda":
            continue
        try:
            data = read_bytes(file.path)
            if not is_generated(data, file) and relevant("cuda")(data):
                yield Source(file.path, decode(data, "cuda")[0], "cuda")
        except Unreadable:
            continue


def _held_against_text(program: Program, row: Row, tree: Path) -> list[str]:
    scans = {path: scan(file.module.text) for path, file in program.files.items()}
    launching = _launching(scans)
    missed = []
    for path, file in program.files.items():
        read = Read(file.module)
        row.left_out += scans[path].not_compiled
        for place in scans[path].places:
            is_read = read.holds(place)
            if place.kind == "launch":
                row.launches += 1
                row.launches_read += is_read
            else:
                row.calls += 1
                row.calls_read += is_read
            if not is_read:
                missed.append(read.told(place, tree))
        for place in uses(scans[path], launching):
            is_read = read.holds(place)
            row.uses += 1
            row.uses_read += is_read
            if not is_read:
                missed.append(read.told(place, tree))
    return missed


def _launching(scans: dict[str, Scan]) -> set[str]:
    """The macros whose bodies, or those of macros that they use, launch or call."""
    bodies: dict[str, str] = {}
    found: set[str] = set()
    for scanned in scans.values():
        found |= set(scanned.in_macros)
        for name, body in scanned.bodies.items():
            bodies[name] = bodies.get(name, "") + body
    words = {name: frozenset(_words(body)) for name, body in bodies.items()}
    while grown := {name for name, used in words.items() if name not in found and used & found}:
        found |= grown
    return found


def _words(text: str) -> Iterable[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()


class Read:
    """The launches and calls of a lowered module, by their places in its text."""

    def __init__(self, module: Module) -> None:
        from streamlint.program import Call, Launch, Name, walk

        self.module = module
        self.lines = [0]
        while (at := module.text.find("\n", self.lines[-1])) >= 0:
            self.lines.append(at + 1)
        self.names: set[int] = set()
        self.expanded: set[int] = set()
        self.launches: set[tuple[int, int]] = set()
        for root in (module.body, *module.functions.values(), *module.classes.values()):
            for part in root if isinstance(root, list) else [root]:
                for node in walk(part):
                    if isinstance(node, Launch | Call):
                        offset = self.offset(*node.name_at[:2])
                        self.names.add(offset)
                        if (
                            isinstance(node, Launch)
                            or not isinstance(node.function, Name)
                            or not self.module.text.startswith(node.function.id, offset)
                        ):
                            self.expanded.add(offset)
                    if isinstance(node, Launch):
                        self.launches.add((self.offset(*node.at[:2]), self.offset(*node.at[2:])))

    def offset(self, row: int, column: int) -> int:
        """Where a row and column stand in the text."""
        return self.lines[row - 1] + column - 1

    def holds(self, place: Place) -> bool:
        """Whether the front end made an operation of what stands there."""
        if place.kind == "launch":
            return any(start <= place.offset < end for start, end in self.launches)
        return place.offset in (self.expanded if place.kind == "use" else self.names)

    def told(self, place: Place, tree: Path) -> str:
        """A line for people."""
        row = bisect_right(self.lines, place.offset)
        line = self.module.text.splitlines()[row - 1].strip() if row <= len(self.module.text.splitlines()) else ""
        return f"{place.kind} {shown(self.module.path, tree)}:{row}: {place.name} | {line[:110]}"


def _run(program: Program, row: Row, tree: Path) -> list[str]:
    """Run every root, and ask which launches were met on a known stream."""
    from streamlint.analysis import Analysis
    from streamlint.config import Settings
    from streamlint.interpreter.run import Coverage

    analysis = Analysis(program, Settings(root=tree).options(True))
    coverage = Coverage()
    for name in list(program.files):
        coverage.merge(analysis.check(name).coverage)
    row.streams, row.streams_known = len(coverage.launches), sum(coverage.launches.values())
    row.crashes += [failure.replace(f"{tree}/", "") for failure in coverage.failures]
    met = {(span.file, line) for span, _ in coverage.launches for line in range(span.row, span.end_row + 1)}
    told = [f"stream {shown(span.file, tree)}:{span.row}: {name}" for (span, name), known in coverage.launches.items() if not known]
    for path, file in program.files.items():
        read = Read(file.module)
        for place in scan(file.module.text).places:
            if place.kind == "launch" and (bounds := next((b for b in read.launches if b[0] <= place.offset < b[1]), None)):
                rows = range(bisect_right(read.lines, bounds[0]), bisect_right(read.lines, bounds[1]) + 1)
                is_met = any((path, line) in met for line in rows)
                row.met += is_met
                told += [] if is_met else [f"not met {read.told(place, tree)}"]
    return told


def shown(path: str, tree: Path) -> str:
    """A path relative to the tree."""
    absolute = Path(path).resolve()
    return absolute.relative_to(tree.resolve()).as_posix() if absolute.is_relative_to(tree.resolve()) else path


# In the parent


def measured(tree: Path, options: argparse.Namespace) -> tuple[Row, list[str]]:
    """Measure a tree in a child process: what crashes spoils one row only."""
    command = [sys.executable, __file__, "--child", str(tree), *(["--front-end"] if options.front_end else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return Row(crashes=[f"no end within {options.limit:.0f} s"]), []
    if done.returncode:
        return Row(crashes=[(done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1][:200]]), []
    told = json.loads(done.stdout.splitlines()[-1])
    return Row(**told["row"]), told["missed"]


HEADS = (
    "package",
    "files",
    "MB/s",
    "launches",
    "read",
    "calls",
    "read",
    "macro uses",
    "read",
    "left out",
    "met",
    "streams",
    "known",
    "crashes",
)


def cells(name: str, row: Row) -> tuple[str, ...]:
    """One line of the table."""
    speed = f"{row.bytes / row.seconds / 1e6:.2f}" if row.seconds else "-"
    pairs = ((row.launches_read, row.launches), (row.calls_read, row.calls), (row.uses_read, row.uses))
    shares = [cell for known, total in pairs for cell in (str(total), percent(known, total))]
    tail = (str(row.left_out), percent(row.met, row.launches), str(row.streams), percent(row.streams_known, row.streams))
    return (name, str(row.files), speed, *shares, *tail, str(len(row.crashes)))


def percent(known: int, total: int) -> str:
    """A share for people."""
    return f"{known / total:.1%}" if total else "-"


def table(rows: dict[str, Row]) -> str:
    """The rows in Markdown, with a sum at the end."""
    every = Row()
    for row in rows.values():
        for item in fields(Row):
            setattr(every, item.name, getattr(every, item.name) + getattr(row, item.name))
    lines = [HEADS, ("---", *["---:"] * (len(HEADS) - 1)), *(cells(name, row) for name, row in rows.items()), cells("**all**", every)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read_record(path: Path = RECORD) -> dict[str, Row]:
    """The committed figures."""
    if not path.exists():
        return {}
    known = {item.name for item in fields(Row)}
    tables: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["packages"]
    return {name: Row(**{key: value for key, value in table.items() if key in known}) for name, table in tables.items()}


def write_record(rows: dict[str, Row], path: Path = RECORD) -> None:
    """Write the figures, sorted."""
    tables = {name: asdict(rows[name]) for name in sorted(rows)}
    path.write_text(json.dumps({"packages": tables}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def trees(options: argparse.Namespace) -> list[Path]:
    """The trees to measure: the pinned sources that hold C++, those that were named, and those of `--also`."""
    pins = [pin.tree for pin in read_pins() if not options.names or pin.name in options.names]
    found = [options.corpus / tree for tree in pins if not (options.also and not options.names)]
    return [tree for tree in found if tree.is_dir()] + options.also


def run(options: argparse.Namespace) -> int:
    """Measure, print, and keep the record."""
    rows = {}
    for tree in trees(options):
        row, missed = measured(tree, options)
        if options.missed:
            print("\n".join(f"{tree.name}: {line}" for line in missed))
        if row.launches or row.calls or row.crashes:
            rows[tree.name] = row
    if not rows:
        raise CorpusError("no package with CUDA C++ was found; run benchmarks/corpus.py fetch, or name the folder with --corpus")
    print(table(rows))
    print("\n".join(f"{name}: crash: {crash}" for name, row in rows.items() for crash in row.crashes))
    if not (options.missed or options.front_end):
        write_record({**read_record(), **rows})
    return int(any(row.crashes for row in rows.values()))


def main(given: Sequence[str] | None = None) -> int:
    """0: measured; 1: something crashed; 2: nothing could be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="packages (default: all of corpus.toml)")
    parser.add_argument("--corpus", type=Path, default=default_folder(), metavar="DIR", help="where corpus.py put the trees")
    parser.add_argument(
        "--also",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="a source tree that is not pinned (alone, if no name is given)",
    )
    parser.add_argument("--missed", action="store_true", help="print what was not read, not met, or is on an unknown stream")
    parser.add_argument("--front-end", action="store_true", help="do not run the interpreter")
    parser.add_argument("--limit", type=float, default=1800, metavar="SECONDS", help="for one package")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.child:
        row, missed = measure(options.child, options.front_end)
        print(json.dumps({"row": asdict(row), "missed": missed}))
        return 0
    try:
        return run(options)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
