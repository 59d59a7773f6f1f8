"""What the build files beside a source say: the default stream that nvcc was told to use."""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path

_BUILD_FILES = ("CMakeLists.txt", "setup.py", "pyproject.toml", "Makefile", "meson.build", "BUILD", "BUILD.bazel")
_PER_THREAD = re.compile(rb"CUDA_API_PER_THREAD_DEFAULT_STREAM|default-stream[\"',\s=]+per-thread")
_MOST_FOLDERS = 8
_MOST_BYTES = 1 << 20


def asks_for_per_thread(text: str) -> bool:
    """Whether a text (Python that compiles) names the option or the macro."""
    return _PER_THREAD.search(_without_comments(text.encode("utf-8", "replace"))) is not None


def per_thread_default_stream(path: str) -> bool:
    """Whether a build file in the folder of ``path`` or above it, up to the root of the repository, asks for per-thread default streams."""
    folder = Path(path).parent
    for _ in range(_MOST_FOLDERS):
        for commands in (_commands(folder), _commands(folder / "build")):
            if (compiled := commands.get(os.path.abspath(path))) is not None:
                return compiled
        if _says_per_thread(folder):
            return True
        if (folder / ".git").exists() or folder.parent == folder:
            return False
        folder = folder.parent
    return False


@functools.lru_cache(maxsize=65536)
def build_root(path: str) -> str:
    """The nearest folder above a file that a build file stands in; its own folder where there is none."""
    folder = Path(path).parent
    for candidate in (folder, *list(folder.parents)[:_MOST_FOLDERS]):
        if any((candidate / name).is_file() for name in _BUILD_FILES):
            return str(candidate)
    return str(folder)


def language_of_source(path: str) -> str:
    """The language that CMake is told to compile a source as (``CUDA``, ``CXX``); empty where nothing is said."""
    folder = Path(path).parent
    for candidate in (folder, *list(folder.parents)[:_MOST_FOLDERS]):
        for sources, language in _told_languages(candidate):
            if Path(path).name in sources:
                return language
        if (candidate / ".git").exists():
            break
    return ""


@functools.lru_cache(maxsize=4096)
def _commands(folder: Path) -> dict[str, bool]:
    """By source: whether the command in a folder's compile_commands.json asks for per-thread default streams."""
    found: dict[str, bool] = {}
    try:
        entries = json.loads((folder / "compile_commands.json").read_bytes())
        for entry in entries:
            command = entry.get("command") or " ".join(entry.get("arguments", ()))
            source = os.path.abspath(folder / entry.get("directory", "") / entry["file"])
            found[source] = _PER_THREAD.search(command.encode()) is not None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return found


_TARGET = re.compile(r"\b(?:cuda_)?add_(?:library|executable)\s*\(([^()]*)\)|\b(?:pybind11_add_module|target_sources)\s*\(([^()]*)\)")
_VARIABLE = re.compile(r"\bset\s*\(\s*(\w+)\s([^()]*)\)")


def sources_built_with(path: str) -> frozenset[str]:
    """The sources of the CMake targets that a source is in, where they are written out."""
    folder = Path(path).parent
    found: set[str] = set()
    for candidate in (folder, *list(folder.parents)[:_MOST_FOLDERS]):
        for sources in _targets(candidate):
            if path in sources:
                found |= sources
        if (candidate / ".git").exists():
            break
    return frozenset(found - {path})


@functools.lru_cache(maxsize=4096)
def _targets(folder: Path) -> tuple[frozenset[str], ...]:
    try:
        with (folder / "CMakeLists.txt").open("rb") as file:
            text = _without_comments(file.read(_MOST_BYTES)).decode("latin-1")
    except OSError:
        return ()
    for name, value in _VARIABLE.findall(text):
        text = text.replace(f"${{{name}}}", value)
    targets: dict[str, set[str]] = {}
    for match in _TARGET.finditer(text):
        name, *words = (match[1] or match[2] or "").replace('"', " ").split() or [""]
        targets.setdefault(name, set()).update(str(folder / word.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")) for word in words)
    return tuple(frozenset(sources) for sources in targets.values())


@functools.lru_cache(maxsize=4096)
def _told_languages(folder: Path) -> tuple[tuple[frozenset[str], str], ...]:
    """``set_source_files_properties(a.cpp b.cpp PROPERTIES LANGUAGE CUDA)`` in a folder's CMakeLists.txt: names and language."""
    try:
        with (folder / "CMakeLists.txt").open("rb") as file:
            text = _without_comments(file.read(_MOST_BYTES)).decode("latin-1")
    except OSError:
        return ()
    return tuple(
        (frozenset(re.split(r"[\s/\"]+", match[1])), match[2])
        for match in re.finditer(r"set_source_files_properties\s*\(([^()]*?)PROPERTIES[^()]*?\bLANGUAGE\s+\"?(CUDA|CXX)\b", text)
    )


@functools.lru_cache(maxsize=4096)
def _says_per_thread(folder: Path) -> bool:
    for name in _BUILD_FILES:
        try:
            with (folder / name).open("rb") as file:
                if _PER_THREAD.search(_without_comments(file.read(_MOST_BYTES))):
                    return True
        except OSError:
            continue
    return False


def _without_comments(data: bytes) -> bytes:
    return re.sub(rb"(?m)^\s*#.*$", b"", data)
