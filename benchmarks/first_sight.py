"""Packages at first sight: draw them by a seed, lint them as they are, keep each finding with what readers say of it, and count.

    python benchmarks/first_sight.py draw --seed N --count K --names FILE --archives DIR --trees DIR
    python benchmarks/first_sight.py lint --trees DIR --findings FILE
    python benchmarks/first_sight.py judge --seed N --findings FILE
    python benchmarks/first_sight.py count [--seed N]

`draw` takes the names that hold a word of the field, shuffles them by the seed, leaves out those that occur in this repository, and unpacks
the first K that use a GPU from the archives in DIR (wheels, source distributions or snapshots, called NAME-VERSION). It names those whose
archive is not there; it fetches nothing. `lint` runs `streamlint check` on each tree in a process of its own and puts all findings into one
file. `judge` writes precision/first_sight/N.toml, to which readers add what they say; `count` prints the precision by rule. Nothing of a
package is run.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import corpus
import ledger
import precision
from shares import share

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "precision" / "first_sight"
LIMIT_S = 600.0
ENOUGH = 3
"""A package is kept if so many of its files import or include what runs on a GPU."""
ENDINGS = (".tar.gz", ".tar.bz2", ".tar", ".tgz", ".whl", ".zip")
WORDS = frozenset(
    "attention bert cuda cupy deep diffusion embedding gan gpt gpu learn llm lora model nemo neural nlp nn numba nvidia rl segment speech"
    " tensor torch train transformer triton tts unet vision vllm whisper yolo".split()
)
PARTS = 6
"""Names of more parts than this are not looked for in the repository."""
IMPORT = re.compile(r"^\s*(?:(?:from|c?import)\s+(?:torch|cupy|cuda|numba\.cuda)\b|from\s+numba\s+import\s+.*\bcuda\b)", re.MULTILINE)
INCLUDE = re.compile(
    r'^\s*#\s*include\s*[<"][^>"\n]*(?:cuda|torch/|thrust/|cub/|cublas|cudnn|cufft|curand|cusparse|cusolver|nccl)',
    re.MULTILINE | re.IGNORECASE,
)
USES = {".py": IMPORT, ".pyx": IMPORT, ".cu": INCLUDE, ".cpp": INCLUDE}


# Draw


def normalised(name: str) -> str:
    """A name as an index compares it; of a repository, without its owner."""
    return re.sub(r"[-_.]+", "-", name.rpartition("/")[2]).strip("-").lower()


def of_the_field(name: str) -> bool:
    """Whether a name holds a word of the field: one of up to three letters as a part of its own, a longer one anywhere."""
    plain = normalised(name)
    return not WORDS.isdisjoint(plain.split("-")) or any(len(word) > 3 and word in plain for word in WORDS)


def mentioned(texts: Iterable[str]) -> set[str]:
    """All normalised names that occur in the texts, be they parts of longer ones."""
    runs = {tuple(re.split(r"[-_.]+", run)) for text in texts for run in re.findall(r"[a-z0-9][a-z0-9._-]*", text.lower())}
    return {"-".join(run[start:end]) for run in runs for start in range(len(run)) for end in range(start + 1, start + 1 + PARTS)}


def repository() -> Iterator[str]:
    """The texts of the files that git tracks here."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=precision.ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (path := precision.ROOT / name).is_file():
            yield path.read_text(encoding="utf-8", errors="ignore")


def order(names: Iterable[str], seed: int, known: set[str]) -> list[str]:
    """The names that a draw looks at, one after the other. What is known changes the place of no other name."""
    shuffled = sorted(set(names))
    random.Random(seed).shuffle(shuffled)
    return [name for name in shuffled if of_the_field(name) and normalised(name) not in known]


def archives(folder: Path) -> dict[str, tuple[Path, str]]:
    """The archives of a folder with their versions, by normalised name."""
    found = {}
    for path in sorted(folder.iterdir()):
        stem = next((path.name.removesuffix(ending) for ending in ENDINGS if path.name.endswith(ending)), "")
        name, version = stem.split("-")[:2] if path.suffix == ".whl" and "-" in stem else stem.rpartition("-")[::2]
        if name and version:
            found[normalised(name)] = path, version
    return found


def users(tree: Path) -> int:
    """How many source files of a tree import or include what runs on a GPU."""
    files = [path for path in tree.rglob("*") if path.suffix in USES and path.is_file()]
    return sum(bool(USES[path.suffix].search(path.read_text(encoding="utf-8", errors="replace"))) for path in files)


def draw(names: Sequence[str], count: int, there: Mapping[str, tuple[Path, str]], trees: Path) -> Iterator[tuple[str, str]]:
    """Unpack until enough are kept; each name that was looked at, with what became of it."""
    trees.mkdir(parents=True, exist_ok=True)
    for name in names:
        if count <= 0:
            return
        archive, version = there.get(normalised(name), (None, ""))
        if archive is None:
            yield name, "no archive"
            continue
        tree = trees / f"{normalised(name)}-{version}"
        try:
            corpus.unpack(archive, tree)
        except (corpus.CorpusError, OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
            yield name, f"not unpacked: {error}"
            continue
        kept = users(tree) >= ENOUGH
        count -= kept
        if not kept:
            tree.rename(trees / f".{tree.name}")
        yield name, tree.name if kept else f"fewer than {ENOUGH} files use a GPU"


# Lint


def lint(tree: Path, limit: float = LIMIT_S) -> dict[str, Any]:
    """What the linter says of one tree, how long it took, and why it said nothing."""
    begun = time.monotonic()
    try:
        said, failure = json.loads(precision.check(tree, limit)), ""
    except (ValueError, OSError, subprocess.TimeoutExpired) as error:
        said, failure = [], f"did not end within {limit:.0f} s" if isinstance(error, subprocess.TimeoutExpired) else str(error)
    return {"findings": said, "seconds": round(time.monotonic() - begun, 2), "failure": failure}


def lint_all(trees: Path, findings: Path) -> int:
    """Lint each tree that is not in the file yet; written after each one."""
    done: dict[str, Any] = json.loads(findings.read_text(encoding="utf-8")) if findings.exists() else {}
    for tree in sorted(path for path in trees.iterdir() if path.is_dir() and not path.name.startswith(".")):
        if tree.name not in done:
            done[tree.name] = outcome = lint(tree)
            findings.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
            print(f"{tree.name}: {len(outcome['findings'])} findings, {outcome['seconds']} s {outcome['failure']}".rstrip(), flush=True)
    return int(any(outcome["failure"] for outcome in done.values()))


# Judge


@dataclass(frozen=True)
class Finding:
    """One finding at first sight, what its readers say, and, where it is settled, the cause of what is not real."""

    package: str
    version: str
    file: str
    row: int
    code: str
    message: str
    fingerprint: str
    cause: str = ""
    judged: tuple[ledger.Judgment, ...] = ()

    @property
    def entry(self) -> ledger.Entry:
        """The finding as the ledger knows it."""
        return ledger.Entry(self.file, self.row, self.code, self.fingerprint, self.judged)


def told(report: Mapping[str, Any]) -> list[Finding]:
    """The findings of a report of `lint`, in the order of package and place. What could not be read (SL000) is none."""
    found = []
    for tree, outcome in report.items():
        package, _, version = tree.rpartition("-")
        for one in outcome["findings"]:
            if one["code"] != "SL000":
                place = one["filename"], one["location"]["row"]
                found.append(Finding(package, version, *place, one["code"], one["message"], one["fingerprint"]))
    return sorted(found, key=lambda one: (one.package, one.file, one.row, one.code, one.fingerprint))


def read(path: Path) -> list[Finding]:
    """The findings of a draw with their judgments."""
    tables = tomllib.loads(path.read_text(encoding="utf-8")).get("finding", [])
    try:
        found = [Finding(**{**table, "judged": tuple(ledger.Judgment(**one) for one in table.get("judged", []))}) for table in tables]
    except TypeError as error:
        raise ledger.LedgerError(f"{path.name}: {error}") from None
    if wrong := [fault for one in found for fault in ledger.faults(one.entry)]:
        raise ledger.LedgerError(f"{path.name}: {'; '.join(wrong)}")
    return found


def write(path: Path, found: Iterable[Finding], head: str = "") -> None:
    """Put the findings into the file of their draw, below its head."""
    lines = [head.rstrip("\n")] if head else []
    for one in found:
        lines += ["", "[[finding]]", *ledger.pairs(one, ("judged",))]
        for judgment in one.judged:
            lines += ["", "[[finding.judged]]", *ledger.pairs(judgment, ())]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines).lstrip("\n") + "\n", encoding="utf-8")


def judge(path: Path, found: Iterable[Finding]) -> None:
    """Write the file of a draw anew. What readers said of findings that are in it already stays, and so does its head."""
    before = {(one.package, one.fingerprint): one for one in read(path)} if path.exists() else {}
    head = path.read_text(encoding="utf-8").partition("[[finding]]")[0] if path.exists() else ""
    kept = [(one, before.get((one.package, one.fingerprint))) for one in found]
    write(path, [replace(one, cause=old.cause, judged=old.judged) if old else one for one, old in kept], head)


# Count


def table(found: Sequence[Finding]) -> Iterator[str]:
    """Precision by rule with its 95 % interval; what is unclear counts as not real."""
    yield f"{'rule':6} {'told':>5} {'judged':>6} {'real':>5} {'not real':>8} {'unclear':>7}  precision [95 %]"
    for rule in [*sorted({one.code for one in found}), "all"]:
        count = ledger.tally(one.entry for one in found if rule in (one.code, "all"))
        cells = f"{count.judged + count.unread:5} {count.judged:6} {count.real:5} {count.false:8} {count.unclear:7}"
        yield f"{rule:6} {cells}  {share(count.real, count.judged)}"


def by_reader(found: Sequence[Finding]) -> Iterator[str]:
    """What each reader called real, and where readers differ and nobody has settled it."""
    for reader in sorted({judgment.reader for one in found for judgment in one.judged} - {ledger.SETTLED}):
        said = [judgment.verdict for one in found for judgment in one.judged if judgment.reader == reader]
        yield f"{reader}: {said.count('real')} of {len(said)} real"
    for one in found:
        if one.entry.disputed:
            yield f"readers differ: {one.code} {one.package} {one.file}:{one.row}"


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all went well, 1 if a tree could not be linted, 2 on an error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing, linting, judging, counting = (commands.add_parser(name) for name in ("draw", "lint", "judge", "count"))
    for command in (drawing, judging):
        command.add_argument("--seed", type=int, required=True, metavar="N")
    counting.add_argument("--seed", type=int, metavar="N", help="one draw (default: all that are stored)")
    drawing.add_argument("--count", type=int, required=True, metavar="K")
    drawing.add_argument("--names", type=Path, required=True, metavar="FILE", help="a table with the name in its first column")
    drawing.add_argument("--leave-out", type=Path, metavar="FILE", help="names that are not drawn, as forks of what is known")
    drawing.add_argument("--archives", type=Path, required=True, metavar="DIR")
    for command in (drawing, linting):
        command.add_argument("--trees", type=Path, required=True, metavar="DIR", help="where packages are unpacked to")
    for command in (linting, judging):
        command.add_argument("--findings", type=Path, required=True, metavar="FILE")
    return ledger.status(run, parser.parse_args(words))


def run(options: argparse.Namespace) -> int:
    """One command."""
    if options.command == "draw":
        names = [line.partition("\t")[0] for line in options.names.read_text(encoding="utf-8").splitlines()]
        left_out = {normalised(name) for name in options.leave_out.read_text(encoding="utf-8").split()} if options.leave_out else set()
        chosen = order(filter(None, names), options.seed, mentioned(repository()) | left_out)
        for name, became in draw(chosen, options.count, archives(options.archives), options.trees):
            print(f"{name}\t{became}", flush=True)
        return 0
    if options.command == "lint":
        return lint_all(options.trees, options.findings)
    if options.command == "judge":
        judge(FOLDER / f"{options.seed}.toml", told(json.loads(options.findings.read_text(encoding="utf-8"))))
        return 0
    for path in sorted(FOLDER.glob(f"{options.seed or '*'}.toml")):
        found = read(path)
        print("\n".join([f"draw {path.stem}", *table(found), *by_reader(found)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
