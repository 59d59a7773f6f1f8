"""The same tree gives the same bytes: whatever the jobs, the hash seed, the locale, the time zone and the order of the files."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from documents import DOCUMENTS, read
from thorough import count

ROOT = Path(__file__).parents[2]
WAYS = {
    "as it is": ((), {}),
    "jobs": (("--jobs", "4"), {"PYTHONHASHSEED": "1"}),
    "seed": (("--jobs", "1"), {"PYTHONHASHSEED": "4242"}),
    "locale": (("--jobs", "2"), {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONHASHSEED": "7"}),
    "zone": (("--jobs", "2"), {"TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "99"}),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some sections of the documents about all rules, each a folder; none that sets a device for the whole process, which holds in all,
    whose class has a method that is called like one of tensors (what is done to something unknown may mean it), or that calls a C library:
    its functions are found by their names in all files."""
    folder = tmp_path_factory.mktemp("tree")
    everything = [section for document in DOCUMENTS for section in read(document)]
    shared = re.compile(r"set_default_device|def (?:to|cpu|cuda)\(self|ctypes\.\w*DLL")
    sections = [section for section in everything if not any(shared.search(file.text) for file in section.files)]
    for number, section in enumerate(sections[:: count(few=48, many=8)]):
        for file in section.files:
            path = folder / section.document / str(number) / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
    return folder


def run(tree: Path, format: str, way: str, paths: list[str], cache: Path | None = None) -> bytes:
    words, more = WAYS[way]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "STREAMLINT_NO_CACHE": "", **more}
    kept = ["--cache-dir", str(cache)] if cache else ["--no-cache"]
    command = [sys.executable, "-m", "streamlint", "check", "--isolated", *kept, "--select", "ALL", "--output-format", format]
    done = subprocess.run([*command, *words, *paths], cwd=tree, env=environment, capture_output=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def by_folder(output: bytes) -> dict[str, list[Any]]:
    """Findings by the section that they stand in. Who may reach one is asked by names, over all files."""
    found: dict[str, list[Any]] = {}
    for finding in json.loads(output):
        (finding["grounds"] or {}).pop("is_reached", None)
        found.setdefault("/".join(finding["filename"].split("/")[:2]), []).append(finding)
    return found


@pytest.fixture(scope="module")
def whole(tree: Path) -> bytes:
    return run(tree, "json", "as it is", ["."])


def test_ways(tree: Path, whole: bytes) -> None:
    assert whole.count(b'"fingerprint"') > 20
    folders = sorted(path.name for path in tree.iterdir())
    os.utime(next(tree.rglob("*.py")), (0, 0))
    paths = {"jobs": [*reversed(folders), "."], "seed": [*folders, *folders], "locale": ["."], "zone": ["."]}
    for way, words in paths.items():
        assert run(tree, "json", way, words) == whole, way


def test_formats(tree: Path) -> None:
    for format in ("sarif", "junit"):
        assert run(tree, format, "as it is", ["sl006"]) == run(tree, format, "zone", ["sl006"])


def test_cut_and_whole(tree: Path, whole: bytes) -> None:
    """A section alone gives what it gives among all others: nothing in it imports anything outside of it."""
    found = by_folder(whole)
    sections = sorted(f"{document.name}/{section.name}" for document in tree.iterdir() for section in document.iterdir())
    assert len(found) > 10
    half = sections[::2]
    assert by_folder(run(tree, "json", "jobs", half)) == {section: found[section] for section in half if section in found}
    for section in random.Random(3).sample(sorted(found), 2):
        assert by_folder(run(tree, "json", "seed", [section])) == {section: found[section]}


def test_shuffled_cold_and_warm(tree: Path, whole: bytes, tmp_path: Path) -> None:
    files = sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file())
    for seed in (1, 2):  # cold, then warm
        random.Random(seed).shuffle(files)
        assert run(tree, "json", "jobs", files, tmp_path) == whole
