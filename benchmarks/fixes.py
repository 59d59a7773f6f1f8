"""Apply every fix to a folder's sources, and look whether each ended its finding, brought none and left sources that parse.

    python benchmarks/fixes.py FOLDER… [--only PATTERN]

Each file or folder in a FOLDER is a program of its own. It is copied, linted with all rules that are not off (and those with a fix), given
all fixes, unsafe ones too, and linted again. Exits with 1 if one did not hold.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from streamlint.checks.rules import all_rules
from streamlint.config.settings import Resolver, Settings
from streamlint.findings import Finding, Report
from streamlint.fix import fixer_of
from streamlint.runner import linter
from streamlint.runner.repairs import repairs

CODES = [code for code, rule in all_rules().items() if rule.default != "off" or fixer_of(code) is not None]


def main(words: list[str]) -> int:
    """Counts for each rule, and the programs in which a fix did not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", default="*", help="the names to take, as a glob")
    options = parser.parse_args(words)
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    failed = []
    for folder in options.folders:
        for source in sorted(folder.glob(options.only)):
            if source.suffix != ".md" and not _holds(source, counts):
                failed.append(str(source))
    print(f"{'rule':<8}{'findings':>10}{'offered':>10}{'applied':>10}")
    for code in sorted({code for code, _ in counts}):
        print(f"{code:<8}{counts[code, 'findings']:>10}{counts[code, 'offered']:>10}{counts[code, 'applied']:>10}")
    print(f"{len(failed)} programs in which a fix did not hold", *failed, sep="\n  ")
    return bool(failed)


def _holds(source: Path, counts: collections.Counter[tuple[str, str]]) -> bool:
    with _copied(source) as folder:
        before = _lint(folder, fixes=True)
        for finding in before.findings:
            if fixer_of(finding.code) is not None:
                counts[finding.code, "findings"] += 1
                counts[finding.code, "offered"] += finding.fix is not None
        done = repairs(before, True)
        if not done.texts:
            return True
        for file, text in done.texts.items():
            Path(file).write_text(text, encoding="utf-8", newline="")
        for finding in done.mended:
            counts[finding.code, "applied"] += 1
        after = _lint(folder)
        left = _by_code(before.findings)
        left.subtract(_by_code(done.mended))
        now = _by_code(after.findings)
        return (
            len(after.problems) <= len(before.problems) and now <= left and all(now[code] == left[code] for code in _by_code(done.mended))
        )


@contextlib.contextmanager
def _copied(source: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "program" / source.name
        target.parent.mkdir()
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
        yield target


def _lint(path: Path, *, fixes: bool = False) -> Report:
    return linter.run([path], Resolver(Settings.of(select=CODES)), linter.How(fixes=fixes))


def _by_code(findings: list[Finding]) -> collections.Counter[str]:
    return collections.Counter(finding.code for finding in findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
