"""What a project holds before it is configured: languages, libraries of CUDA, and folders that are hardly its own code."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from streamlint.config.settings import Resolver, Settings
from streamlint.discovery.files import DEFAULT_FOLDERS, Found, discover
from streamlint.discovery.triggers import libraries, relevant
from streamlint.support.errors import PathError
from streamlint.support.reading import Unreadable, read_bytes, read_source
from streamlint.support.records import record

# Names of folders that hold what others wrote, what a program wrote, or what nobody ships; those of `DEFAULT_FOLDERS` are out anyway.
FOREIGN = {
    **dict.fromkeys("vendor vendored _vendor external externals extern deps subprojects submodules".split(), "code of others"),
    **dict.fromkeys("generated _generated autogen".split(), "generated"),
    **dict.fromkeys("unittest unittests unit_tests integration_tests e2e".split(), "tests"),
    **dict.fromkeys("bench benches perf".split(), "benchmarks"),
    **dict.fromkeys("samples demo demos tutorial tutorials notebooks doc docs".split(), "examples"),
}
# Kinds that hold for a folder which is a Python package as well: one called `demo` may be part of the product.
EVEN_PACKAGES = ("code of others", "generated")
# Names of files that are tests or benchmarks wherever they stand.
NAMED = {
    "test_*.py": ("tests", re.compile(r"test_.*\.py")),
    "*_test.py": ("tests", re.compile(r".*_test\.py")),
    "*_test.c*": ("tests", re.compile(r".*_test\.(?:cu|cc|cpp|cxx)")),
    "bench_*.py": ("benchmarks", re.compile(r"bench_.*\.py")),
}
MOST_PLACES = 3  # folders of one name that are proposed by their paths
TITLES = {
    "torch": "PyTorch",
    "cupy": "CuPy",
    "cuda": "cuda-python",
    "cuda-runtime": "CUDA runtime",
    "cuda-driver": "CUDA driver",
    "cuda-libraries": "CUDA libraries",
    "rapids": "RAPIDS",
    "thrust": "Thrust and CUB",
}
_IMPORT = re.compile(rb"^[ \t]*\"?(?:from|import|cimport)[ \t]+(torch|cupy|numba|cuda)\b", re.MULTILINE)
_MODULE = re.compile(r"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE)


@record(frozen=True, slots=True)
class Survey:
    """What stands in a folder. Counts are of files."""

    languages: Mapping[str, int]  # Python, Cython, C++: all that could be linted
    libraries: Mapping[str, int]  # by name: those that mention CUDA, outside of what is left out
    suffixes: tuple[str, ...]  # patterns of what was found, such as ``*.cu``
    default_excludes: tuple[str, ...]  # folders below the top that are left out by default, by name
    proposals: Mapping[str, str]  # patterns to exclude, and what they hold


def survey(folder: Path) -> Survey:
    """Look through a folder as a run without a configuration would, and into what such a run leaves out.

    Raises PathError where there is no such folder.
    """
    if not folder.is_dir():
        raise PathError(f"{folder}: {'not a folder' if folder.exists() else 'no such file or folder'}")
    root = Path(os.path.abspath(folder))
    files = discover([root], Resolver(Settings(root=root), default_excludes=False)).files
    modules = _submodules(root)
    uses: Counter[str] = Counter()
    skipped: set[str] = set()
    foreign: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for file in files:
        inside = os.path.relpath(file.path, root).replace(os.sep, "/")
        out = next((part for part in inside.split("/")[:-1] if part.lower() in DEFAULT_FOLDERS), None)
        if out is not None:
            skipped.add(out)
        elif found := _libraries(file):
            place, name = _foreign(root, inside, modules), _named(inside)
            foreign.update([place] if place else [])
            names.update([name] if name and not place else [])
            uses.update(found if not (place or name) else [])
    return Survey(
        languages=dict(Counter(_LANGUAGES[file.language] for file in files).most_common()),
        libraries=dict(uses.most_common()),
        suffixes=tuple(sorted({f"*{os.path.splitext(file.path)[1]}" for file in files})),
        default_excludes=tuple(sorted(skipped)),
        proposals=_proposals(foreign, modules) | {pattern: NAMED[pattern][0] for pattern in NAMED if names[pattern]},
    )


_LANGUAGES = {"python": "Python", "cython": "Cython", "cuda": "C++"}


def _libraries(file: Found) -> list[str]:
    """The libraries by which a file mentions CUDA; one that cannot be read mentions none."""
    try:
        data = read_source(file.path)
    except Unreadable:
        return []
    if not relevant(file.language)(data):
        return []
    named = {word.decode() for word in _IMPORT.findall(data)} if file.language != "cuda" else set()
    named.update(name for name, mentions in libraries().items() if file.language != "python" and mentions(data))
    return sorted(TITLES.get(name, name) for name in named or {"CUDA"})


def _submodules(root: Path) -> frozenset[str]:
    """The folders of git submodules, relative."""
    try:
        text = read_bytes(root / ".gitmodules", 1 << 20).decode("utf-8", "replace")
    except Unreadable:
        return frozenset()
    return frozenset(path.strip('"').strip("/") for path in _MODULE.findall(text))


def _foreign(root: Path, inside: str, modules: frozenset[str]) -> str | None:
    """The outermost folder above a file that is a submodule, or has a name of `FOREIGN`."""
    parts = inside.split("/")[:-1]
    for number, part in enumerate(parts, 1):
        path = "/".join(parts[:number])
        kind = FOREIGN.get(part.lower())
        if path in modules or (kind and (kind in EVEN_PACKAGES or not (root / path / "__init__.py").exists())):
            return path
    return None


def _named(inside: str) -> str | None:
    name = inside.rpartition("/")[2]
    return next((pattern for pattern, (_, shape) in NAMED.items() if shape.fullmatch(name)), None)


def _proposals(foreign: Mapping[str, int], modules: frozenset[str]) -> dict[str, str]:
    """Patterns for folders: by their paths, or by their name where there are many."""
    by_name = Counter(path.rpartition("/")[2] for path in foreign if path not in modules)
    found: dict[str, str] = {}
    for path in sorted(foreign):
        name = path.rpartition("/")[2]
        if path in modules:
            found[f"/{_escaped(path)}/"] = "a git submodule"
        elif by_name[name] > MOST_PLACES:
            found[f"{_escaped(name)}/"] = FOREIGN[name.lower()]
        else:
            found[f"/{_escaped(path)}/"] = FOREIGN[name.lower()]
    return found


def _escaped(path: str) -> str:
    """A path as a pattern that matches it alone; what no text file can hold matches as any character."""
    return re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", "?", re.sub(r"([\\*?\[\]])", r"\\\1", path))
