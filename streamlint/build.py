"""What the build files beside a source say: the default stream that nvcc was told to use."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from streamlint import build_cmake
from streamlint.reading import Unreadable, read_bytes

_BUILD_FILES = ("CMakeLists.txt", "setup.py", "pyproject.toml", "Makefile", "meson.build", "BUILD", "BUILD.bazel")
_ALSO_READ = ("setup.cfg", "makefile", "GNUmakefile", "xmake.lua", "SConstruct")
_COMPILES = re.compile(r"CUDA|nvcc|\bcuda\b|\.cu\b")
_MOST_FOLDERS = 8
_MOST_BYTES = 1 << 20
_MOST_COMMANDS = 1 << 26


_kept: list[Any] = []
asked: dict[str, dict[str, Any]] = {}  # by the path of a source: the answers that its build files gave
_questions: dict[str, Callable[..., Any]] = {}
T = TypeVar("T")


def question(function: Callable[[str], T]) -> Callable[[str], T]:
    """What is asked of the build files for a source: each answer is kept, so that a cache can ask again."""
    kept = functools.lru_cache(maxsize=65536)(function)

    @functools.wraps(function)
    def ask(path: str) -> T:
        answer = kept(path)
        asked.setdefault(path, {})[function.__name__] = answer
        return answer

    _questions[function.__name__] = ask
    _kept.append(kept)
    return ask


def answer(word: str, path: str) -> object:
    """What the build files of a source say now; ``word`` is a key of what was ``asked``."""
    name, _, include = word.partition(" ")
    found = lies_beside(path, include) if name == "lies_beside" else _questions[name](path)
    return plain_answer(found)


def plain_answer(found: object) -> object:
    """An answer as plain data."""
    return sorted(found) if isinstance(found, frozenset) else found


def forget() -> None:
    """Read build files again: for who runs more than once, or from another folder."""
    asked.clear()
    for kept in (*_kept, _build_files, _commands, _targets, _told_languages):
        kept.cache_clear()


def lies_beside(path: str, include: str) -> bool:
    """Whether what a source includes lies there to be read."""
    found = (Path(path).parent / include).is_file()
    asked.setdefault(path, {})[f"lies_beside {include}"] = found
    return found


def default_stream_of_python(text: str, source: str) -> bool | None:
    """Whether Python that compiles a source gives it per-thread default streams; None where that hangs on a condition."""
    from streamlint import build_python

    try:
        return build_python.said_of(text, source)
    except (SyntaxError, ValueError, RecursionError):
        return _says_plainly(text)


@question
def per_thread_default_stream(path: str) -> bool | None:
    """Whether the build files at and above a source, up to the root of the repository, give it per-thread default streams.

    False if what compiles it does not ask for them; None if nothing at hand compiles it, or if it hangs on an option.
    """
    source = Path(os.path.abspath(path))
    folder, is_built, maybe = source.parent, False, False
    for _ in range(_MOST_FOLDERS):
        for commands in (_commands(folder), _commands(folder / "build")):
            if (compiled := commands.get(str(source))) is not None:
                return compiled
        for file, text in _build_files(folder):
            said = _said_by(file, text, source)
            if said:
                return True
            maybe = maybe or said is None
            is_built = is_built or _COMPILES.search(text) is not None
        if (folder / ".git").exists() or folder.parent == folder:
            break
        folder = folder.parent
    return False if is_built and not maybe else None


def _said_by(file: Path, text: str, source: Path) -> bool | None:
    if "per-thread" not in text and "PER_THREAD" not in text:
        return False
    if file.name == "CMakeLists.txt" or file.suffix == ".cmake":
        return build_cmake.said_of(text, file.parent, source)
    if file.suffix == ".py":
        return default_stream_of_python(text, str(source))
    return _says_plainly(text)


def _says_plainly(text: str) -> bool | None:
    """What a build file of another kind says: the option in its text, None if only between ``ifdef`` and ``endif``."""
    depth, answer = 0, False
    for line in text.splitlines():
        if re.match(r"\s*if(?:n?def|n?eq)\b", line):
            depth += 1
        elif re.match(r"\s*endif\b", line):
            depth -= 1
        elif build_cmake.PER_THREAD.search(line.split("#")[0] if not line.lstrip().startswith("#define") else ""):
            if not depth:
                return True
            answer = True
    return None if answer else False


@functools.lru_cache(maxsize=4096)
def _build_files(folder: Path) -> tuple[tuple[Path, str], ...]:
    """The build files of a folder, with those of its ``cmake`` folder."""
    try:
        names = set(os.listdir(folder))
        more = [Path("cmake", name) for name in sorted(os.listdir(folder / "cmake"))] if "cmake" in names else []
    except OSError:
        return ()
    held = [Path(name) for name in (*_BUILD_FILES, *_ALSO_READ, *sorted(n for n in names if n.endswith(".cmake"))) if name in names]
    found = []
    for name in (*held, *(each for each in more if each.suffix == ".cmake")):
        with contextlib.suppress(Unreadable):
            found.append((folder / name, read_bytes(folder / name, _MOST_BYTES).decode("utf-8", "replace")))
    return tuple(found)


@question
def build_root(path: str) -> str:
    """The nearest folder above a file that a build file stands in; its own folder where there is none."""
    folder = Path(path).parent
    for candidate in (folder, *list(folder.parents)[:_MOST_FOLDERS]):
        if any((candidate / name).is_file() for name in _BUILD_FILES):
            return str(candidate)
    return str(folder)


@question
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
        entries = json.loads(read_bytes(folder / "compile_commands.json", _MOST_COMMANDS))
        for entry in entries:
            command = entry.get("command") or " ".join(entry.get("arguments", ()))
            source = os.path.abspath(folder / entry.get("directory", "") / entry["file"])
            found[source] = build_cmake.PER_THREAD.search(command) is not None
    except (Unreadable, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
    return found


_TARGET = re.compile(r"\b(?:cuda_)?add_(?:library|executable)\s*\(([^()]*)\)|\b(?:pybind11_add_module|target_sources)\s*\(([^()]*)\)")
_VARIABLE = re.compile(r"\bset\s*\(\s*(\w+)\s([^()]*)\)")


@question
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
        text = _without_comments(read_bytes(folder / "CMakeLists.txt", _MOST_BYTES)).decode("latin-1")
    except Unreadable:
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
        text = _without_comments(read_bytes(folder / "CMakeLists.txt", _MOST_BYTES)).decode("latin-1")
    except Unreadable:
        return ()
    return tuple(
        (frozenset(re.split(r"[\s/\"]+", match[1])), match[2])
        for match in re.finditer(r"set_source_files_properties\s*\(([^()]*?)PROPERTIES[^()]*?\bLANGUAGE\s+\"?(CUDA|CXX)\b", text)
    )


def _without_comments(data: bytes) -> bytes:
    return re.sub(rb"(?m)^\s*#.*$", b"", data)
