"""How many findings change when code is rewritten without a change of meaning, over any folder of programs.

    python benchmarks/rewriting.py FOLDER… [--verbose] [--only NAME]

Each file of a folder, and each folder in it, is a program. Comments at the ends of lines are left out, so that marks say nothing to the
linter. The rewrites are those of `tests/rewrites`, and other names (`tests/rename.py`).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from rename import File, rename  # noqa: E402
from rewrites.cases import REWRITES, Case, Difference, compare, difference, findings, places  # noqa: E402
from rewrites.labels import labelled  # noqa: E402

from streamlint.checks.base import registry  # noqa: E402
from streamlint.config.options import Options  # noqa: E402

LANGUAGES = {".py": "python", ".cu": "cuda", ".cuh": "cuda", ".cpp": "cuda", ".h": "cuda"}


def programs(folder: Path) -> Iterator[tuple[Path, list[File]]]:
    """The programs of a folder that hold Python: each with the folder that its files are named from."""
    for entry in sorted(folder.iterdir()):
        home = entry if entry.is_dir() else folder
        paths = sorted(path for path in (entry.rglob("*") if entry.is_dir() else [entry]) if path.suffix in LANGUAGES)
        if any(path.suffix == ".py" for path in paths):
            yield home, [File(p.relative_to(home).as_posix(), LANGUAGES[p.suffix], p.read_text(encoding="utf-8")) for p in paths]


def changes(files: list[File], options: Options) -> Iterator[tuple[str, Difference | None]]:
    """What each rewrite changes in one program."""
    yield from compare(Case(files, options, []))
    marked = labelled(files)
    before = places(marked, findings(marked, options))
    renamed = rename(marked)
    yield "rename", difference(before, places(renamed, findings(renamed, options)))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--verbose", action="store_true", help="name the programs that change")
    parser.add_argument("--only", default="", help="programs whose name holds this")
    words = parser.parse_args()
    options = Options(codes=frozenset(registry()))
    counts: Counter[tuple[str, str]] = Counter()
    for folder in words.folders:
        for home, files in programs(folder.resolve()):
            name = f"{folder.name}/{files[0].name if home == folder.resolve() else home.name}"
            if words.only not in name:
                continue
            os.chdir(home)
            for rewrite, found in changes(files, options):
                counts[rewrite, "left" if found is None else "differs" if found else "same"] += 1
                if found and words.verbose:
                    print(f"{name}: {rewrite}: lost {', '.join(found.lost) or '-'}; new {', '.join(found.new) or '-'}")
    for rewrite in (*REWRITES, "rename"):
        print(_line(rewrite, *(counts[rewrite, kind] for kind in ("differs", "same", "left"))))
    print(_line("all", *(sum(counts[r, kind] for r in (*REWRITES, "rename")) for kind in ("differs", "same", "left"))))
    return 0


def _line(name: str, differs: int, same: int, left: int) -> str:
    share = 100 * differs / max(differs + same, 1)
    return f"{name:<14} {differs:4} of {differs + same:5} differ ({share:.1f} %), {left} do not apply"


if __name__ == "__main__":
    sys.exit(main())
