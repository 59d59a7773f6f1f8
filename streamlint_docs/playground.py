"""The playground: the linter in the reader's browser, under Pyodide. What it needs is packed here, beside the site's other assets.

Pyodide has no wheel of tree-sitter-cuda: the playground lints Python alone.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from streamlint.checks.rules import all_rules
from streamlint_docs import ROOT
from streamlint_docs.programs import blocks, whole

VERSION = "314.0.7"  # of Pyodide, as on npm; its Python is 3.14
HOST = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
PURE = ("pathspec", "platformdirs")  # what `streamlint check` imports for a file of Python, beside the parser of C++
ENTRY = "streamlint_playground.py"
LEFT_OUT = ("verify/templates", "verify/pages", "__pycache__")


def write(folder: Path, pyodide: Path | None = None) -> None:
    """Put the archive, the examples and, where it is given, a copy of Pyodide into the folder of the site's assets."""
    target = folder / "playground"
    target.mkdir(parents=True, exist_ok=True)
    pack(target / "streamlint.zip")
    if pyodide is not None:
        shutil.copytree(pyodide, target / "pyodide", dirs_exist_ok=True)
    settings = {"pyodide": HOST if pyodide is None else "pyodide/", "examples": examples()}
    (target / "playground.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")


def examples() -> dict[str, str]:
    """The misuse of each rule's page that is Python, by the rule's code and name."""
    found = {}
    for code, rule in all_rules().items():
        sections = rule.documentation()
        both = "\n".join(sections.get(name, "") for name in ("Example", "Use instead"))
        if own := blocks(sections.get("Example", "")):
            language, body = own[0]
            if language == "python":
                found[f"{code} {rule.name}"] = whole(language, body, both).text
    return found


def pack(path: Path) -> None:
    """A zip of the package, what it imports, and the worker's entry; the same bytes for the same files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in sorted(_members()):
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=zipfile.ZIP_DEFLATED)


def _members() -> Iterator[tuple[str, bytes]]:
    yield ENTRY, (Path(__file__).parent / "in_browser.py").read_bytes()
    for path in (ROOT / "streamlint").rglob("*"):
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and not any(part in name for part in LEFT_OUT):
            yield name, path.read_bytes()
    for package in PURE:
        for file in importlib.metadata.files(package) or ():
            if file.suffix == ".py":
                yield file.as_posix(), file.read_binary()
