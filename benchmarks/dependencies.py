"""What streamlint's dependencies cost and bring. The figures of docs/dependencies.md are this script's.

    python benchmarks/dependencies.py imports [--runs 15]     processor time of importing each, over bare Python
    python benchmarks/dependencies.py wheels [NAME…]          systems and Pythons that the newest release has wheels for
    python benchmarks/dependencies.py licences                licence, author, size, with all that they bring; exit 1 if one is not known

`wheels` asks the index that pip is configured with, by `unearth`; the other two look at what is installed. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata

import corpus
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

PACKAGE = "streamlint"
EXTRAS = ("server", "dask")  # those that are no more than Python packages; `cuda12` and `cuda13` bring CuPy
# What we import of each, where it is not the package's own name.
MODULES = {
    "ahocorasick-rs": "ahocorasick_rs",
    "pygls": "pygls.lsp.server",
    "tree-sitter": "tree_sitter",
    "tree-sitter-cuda": "tree_sitter_cuda",
}
SYSTEMS = {
    "Linux x86-64": r"manylinux.*_x86_64|linux_x86_64",
    "Linux ARM64": r"manylinux.*_aarch64|linux_aarch64",
    "musl x86-64": r"musllinux.*_x86_64",
    "musl ARM64": r"musllinux.*_aarch64",
    "macOS ARM64": r"macosx.*_(?:arm64|universal2)",
    "macOS x86-64": r"macosx.*_(?:x86_64|universal2)",
    "Windows x64": r"win_amd64",
    "Windows ARM64": r"win_arm64",
}
PYTHONS = ((3, 10), (3, 11), (3, 12), (3, 13), (3, 14))
# Licences under which a program under Apache-2.0 may depend on a package. The copyleft of MPL stays with its files.
COMPATIBLE = frozenset({"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CNRI-Python", "ISC", "MIT", "MPL-2.0", "PSF-2.0"})
# What older metadata writes in its own words.
SPELLINGS = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD-3": "BSD-3-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
HEADS = {"Apache License Version 2.0": "Apache-2.0", "MIT License": "MIT"}  # how the texts of licences begin


# What is needed


def required(extras: Iterable[str] = ()) -> list[Requirement]:
    """What streamlint itself asks for on this Python, and with these extras."""
    return list(_needs(PACKAGE, {"", *extras}))


def closure(extras: Iterable[str] = ()) -> list[str]:
    """The names of all distributions that an installation brings, as installed here."""
    found: set[str] = set()
    left: list[tuple[str, frozenset[str]]] = [(need.name, frozenset(need.extras)) for need in required(extras)]
    while left:
        name, wanted = left.pop()
        if canonicalize_name(name) in found:
            continue
        found.add(canonicalize_name(name))
        left += [(need.name, frozenset(need.extras)) for need in _needs(name, {"", *wanted})]
    return sorted(found)


def _needs(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    for text in metadata.requires(name) or ():
        need = Requirement(text)
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras):
            yield need


# Licences


def licence(name: str) -> str:
    """The licence that a distribution's metadata declares, as an SPDX expression where its words are known; else that of its text."""
    said = metadata.metadata(name)
    if expression := said.get("License-Expression"):
        return expression
    kinds = [line.rpartition(" :: ")[2] for line in said.get_all("Classifier") or () if line.startswith("License :: OSI Approved :: ")]
    text = (said.get("License") or "").strip()
    words = [text] if text in SPELLINGS or text in COMPATIBLE else kinds or [text.splitlines()[0] if text else ""]
    return " AND ".join(sorted({SPELLINGS.get(word, word) for word in words})) or _by_text(name)


def _by_text(name: str) -> str:
    for file in metadata.files(name) or ():
        if ".dist-info" in str(file) and file.name.upper().startswith("LICEN"):
            text = " ".join(file.read_text().split())
            return next((expression for head, expression in HEADS.items() if text.startswith(head)), "")
    return ""


def is_compatible(expression: str) -> bool:
    """Whether each licence of an expression may be met, or one of those that may be chosen from."""
    return any(all(word.strip("() ") in COMPATIBLE for word in re.split(r"\bAND\b", choice)) for choice in re.split(r"\bOR\b", expression))


def author(name: str) -> str:
    """Who is said to make a distribution."""
    said = metadata.metadata(name)
    text = said.get("Author") or said.get("Maintainer") or said.get("Author-email") or said.get("Maintainer-email") or ""
    return re.sub(r"\s*<[^>]*>|\"", "", text).strip()


def size(name: str) -> int:
    """Bytes of its files on disk, without byte code."""
    files = metadata.files(name) or ()
    return sum(entry.size or 0 for entry in files if entry.suffix != ".pyc")


# Imports


def import_cost(module: str | None, runs: int) -> float:
    """Median CPU milliseconds of a Python that imports a module (or none) and ends."""
    command = [sys.executable, "-c", f"import {module}" if module else "pass"]
    return statistics.median(_ran(command) for _ in range(runs)) * 1000


def _ran(command: Sequence[str]) -> float:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=os.sep)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    return used.ru_utime + used.ru_stime


# Wheels


@functools.cache
def files_of(name: str) -> tuple[str, tuple[str, ...], bool]:
    """The newest release on the index, its wheels, and whether it has sources. It has to be final and not withdrawn."""
    from unearth import PackageFinder

    settings = corpus.configured()
    if "cert" in settings:
        os.environ.setdefault("SSL_CERT_FILE", settings["cert"])
    urls = [settings["index-url"]] if "index-url" in settings else ()
    packages = [
        (Version(package.version), package.link.filename)
        for package in PackageFinder(index_urls=urls, ignore_compatibility=True).find_all_packages(name)
        if package.version and not Version(package.version).is_prerelease
    ]
    if not packages:
        raise SystemExit(f"the index has no {name}")
    newest = max(version for version, _ in packages)
    files = sorted({file for version, file in packages if version == newest})
    wheels = tuple(file for file in files if file.endswith(".whl"))
    return str(newest), wheels, len(wheels) < len(files)


def pythons_with(wheels: Iterable[str], system: str) -> list[tuple[int, int]]:
    """The Pythons that have a wheel for a system."""
    return [python for python in PYTHONS if any(_fits(wheel, python, system) for wheel in wheels)]


def _fits(wheel: str, python: tuple[int, int], system: str) -> bool:
    own = f"cp{python[0]}{python[1]}"
    for tag in parse_wheel_filename(wheel)[3]:
        if tag.platform != "any" and not re.fullmatch(SYSTEMS[system], tag.platform):
            continue
        if tag.interpreter in ("py3", f"py{python[0]}{python[1]}") and tag.abi == "none":
            return True
        if tag.interpreter == own and tag.abi in (own, "none", "abi3"):
            return True
        stable = re.fullmatch(r"cp3(\d+)", tag.interpreter)
        if tag.abi == "abi3" and stable and int(stable[1]) <= python[1]:
            return True
    return False


def shown(pythons: Sequence[tuple[int, int]]) -> str:
    """``all``, ``none``, or which."""
    if len(pythons) == len(PYTHONS):
        return "all"
    return ", ".join(f"{major}.{minor}" for major, minor in pythons) or "none"


# Tables


def _imports(runs: int) -> int:
    bare = import_cost(None, runs)
    print(f"Python {sys.version.split()[0]}, bare: {bare:.0f} ms of processor time\n\n| package | version | adds ms |\n|---|---|---|")
    for need in required(EXTRAS):
        cost = import_cost(MODULES.get(need.name, need.name), runs)
        print(f"| {need.name} | {metadata.version(need.name)} | {cost - bare:.0f} |")
    return 0


def _wheels(names: Sequence[str]) -> int:
    chosen = names or [
        need.name for need in [*required(), *(one for extra in EXTRAS for one in required([extra]) if one not in required())]
    ]
    print(f"| package | newest | {' | '.join(SYSTEMS)} | sources |\n|---|---|{'---|' * (len(SYSTEMS) + 1)}")
    for name in chosen:
        newest, wheels, sources = files_of(name)
        cells = [shown(pythons_with(wheels, system)) for system in SYSTEMS]
        print(f"| {name} | {newest} | {' | '.join(cells)} | {'yes' if sources else 'no'} |")
    return 0


def _licences() -> int:
    plain, bad = closure(), 0
    print("| package | version | licence | made by | KiB | comes with |\n|---|---|---|---|---|---|")
    for name in closure(EXTRAS):
        said = licence(name)
        bad += not is_compatible(said)
        comes = "streamlint" if name in plain else "an extra"
        print(f"| {name} | {metadata.version(name)} | {said or 'not said'} | {author(name)} | {size(name) // 1024} | {comes} |")
    return int(bad > 0)


def main(words: Sequence[str] | None = None) -> int:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("imports").add_argument("--runs", type=int, default=15)
    commands.add_parser("wheels").add_argument("names", nargs="*", metavar="NAME")
    commands.add_parser("licences")
    options = parser.parse_args(words)
    if options.command == "imports":
        return _imports(options.runs)
    return _wheels(options.names) if options.command == "wheels" else _licences()


if __name__ == "__main__":
    sys.exit(main())
