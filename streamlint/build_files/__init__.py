"""What the build files beside a source say: the default stream that nvcc was given, whether Python is packaged.

In: paths of sources. Out: answers of CMake, setup scripts and compile commands. May import: ``support``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.build_files import cmake
from streamlint.support.lazy import lazy
from streamlint.support.reading import Unreadable, read_bytes, stat_of

if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")
    from streamlint.build_files import python
else:
    (python,) = lazy("streamlint.build_files", "python")

_BUILD_FILES = ("CMakeLists.txt", "setup.py", "pyproject.toml", "Makefile", "meson.build", "BUILD", "BUILD.bazel")
_ALSO_READ = ("setup.cfg", "makefile", "GNUmakefile", "xmake.lua", "SConstruct")
_COUNT = frozenset((*_BUILD_FILES, *_ALSO_READ, ".git", "cmake", "build", "compile_commands.json"))  # names of a folder
_COMPILES = re.compile(r"CUDA|nvcc|\bcuda\b|\.cu\b")
_PACKAGES = {
    "pyproject.toml": re.compile(r"^\[build-system\]", re.MULTILINE),
    "setup.cfg": re.compile(r"^\[(?:metadata|options)\]", re.MULTILINE),
    "setup.py": re.compile(r"\bsetup\("),
}
_MOST_FOLDERS = 8
_MOST_BYTES = 1 << 20
_MOST_COMMANDS = 1 << 26


_kept: list[Any] = []
asked: dict[str, dict[str, Any]] = {}  # by the path of a source: the answers that its build files gave
_questions: dict[str, Callable[..., Any]] = {}


def question(function: Callable[[str], T]) -> Callable[[str], T]:
    """What is asked of the build files for a source: each answer is kept, so that a cache can compare it."""
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
    """Forget what build files said: for callers that run more than once, or from another folder."""
    asked.clear()
    _folders.clear()
    for kept in (*_kept, _up_to_root, _around):
        kept.cache_clear()


def lies_beside(path: str, include: str) -> bool:
    """Whether what a source includes lies there to be read."""
    found = (Path(path).parent / include).is_file()
    asked.setdefault(path, {})[f"lies_beside {include}"] = found
    return found


def default_stream_of_python(text: str, source: str) -> bool | None:
    """Whether Python that compiles a source gives it per-thread default streams; None where that hangs on a condition."""
    try:
        return python.said_of(text, source)
    except (SyntaxError, ValueError, RecursionError):
        return _says_plainly(text)


@question
def per_thread_default_stream(path: str) -> bool | None:
    """Whether the build files at and above a source, up to the root of the repository, give it per-thread default streams.

    False if what compiles it does not ask for them; None if no known build file compiles it, or if it hangs on an option.
    """
    return _default_stream_of(os.path.abspath(path))[0]


@question
def per_thread_place(path: str) -> str:
    """Where that is asked for, as ``file:row:column:end``; empty where no build file that is read as text asks for it."""
    file = _default_stream_of(os.path.abspath(path))[1]
    if file is None:
        return ""
    with contextlib.suppress(Unreadable):
        return ":".join(map(str, (file, *place_in_text(read_bytes(file, _MOST_BYTES).decode("utf-8", "replace")))))
    return ""


def place_in_text(text: str) -> tuple[int, int, int]:
    """The row and the columns at which a text first names the option for per-thread default streams."""
    for row, line in enumerate(text.splitlines(), 1):
        if found := _OPTION.search(line.split("#")[0] if not line.lstrip().startswith("#define") else line):
            return row, found.start() + 1, found.end() + 1
    return 1, 1, 2


_OPTION = re.compile(r"-*default-stream[\"',;\s=]*(?:per-thread)?|CUDA_API_PER_THREAD_DEFAULT_STREAM")


def _default_stream_of(source: str) -> tuple[bool | None, Path | None]:
    """What the build files say of a source, and the one that asks for per-thread default streams."""
    is_built, maybe = False, False
    for here in _up_to_root(os.path.dirname(source)):
        for commands in here.commands:
            if (compiled := commands.get(source)) is not None:
                return compiled, None
        for file, text in here.speaking:
            said = _said_by(file, text, Path(source))
            if said:
                return True, file
            maybe = maybe or said is None
        is_built = is_built or here.compiles
    return (False if is_built and not maybe else None), None


def _said_by(file: Path, text: str, source: Path) -> bool | None:
    if file.name == "CMakeLists.txt" or file.suffix == ".cmake":
        return cmake.said_of(text, file.parent, source)
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
        elif cmake.PER_THREAD.search(line.split("#")[0] if not line.lstrip().startswith("#define") else ""):
            if not depth:
                return True
            answer = True
    return None if answer else False


class _Folder:
    """What is asked of one folder, for all sources at and below it; it is listed once, and only what stands there is opened."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.stat = stat_of(folder)
        self._names = _names_in(folder)
        self.is_root = ".git" in self._names and os.path.exists(os.path.join(folder, ".git"))
        self.is_built = any(name in self._names and os.path.isfile(os.path.join(folder, name)) for name in _BUILD_FILES)

    @functools.cached_property
    def commands(self) -> tuple[dict[str, bool], ...]:
        """What its compile_commands.json, and that of its ``build`` folder, say."""
        held = [self._folder] if "compile_commands.json" in self._names else []
        held += [os.path.join(self._folder, "build")] if "build" in self._names else []
        return tuple(filter(None, map(_commands, held)))

    @functools.cached_property
    def _texts(self) -> tuple[tuple[Path, str], ...]:
        """Its build files, with those of its ``cmake`` folder."""
        more: list[str] = []
        if "cmake" in self._names:
            with contextlib.suppress(OSError):
                more = [os.path.join("cmake", name) for name in sorted(os.listdir(os.path.join(self._folder, "cmake")))]
        held = [name for name in (*_BUILD_FILES, *_ALSO_READ) if name in self._names]
        found = []
        for name in (*held, *(name for name in (*sorted(self._names), *more) if name.endswith(".cmake"))):
            file = Path(self._folder, name)
            with contextlib.suppress(Unreadable):
                found.append((file, read_bytes(file, _MOST_BYTES).decode("utf-8", "replace")))
        return tuple(found)

    @functools.cached_property
    def compiles(self) -> bool:
        """Whether a build file here names CUDA."""
        return any(_COMPILES.search(text) is not None for _, text in self._texts)

    @functools.cached_property
    def packages(self) -> bool:
        """Whether a build file here makes a package of Python: by a build system, or as setuptools did before there were any."""
        return any(mark.search(text) is not None for file, text in self._texts if (mark := _PACKAGES.get(file.name)) is not None)

    @functools.cached_property
    def speaking(self) -> tuple[tuple[Path, str], ...]:
        """Its build files that mention per-thread default streams."""
        return tuple((file, text) for file, text in self._texts if "per-thread" in text or "PER_THREAD" in text)

    @functools.cached_property
    def _cmake(self) -> str:
        """Its CMakeLists.txt without comments."""
        if "CMakeLists.txt" not in self._names:
            return ""
        try:
            return _without_comments(read_bytes(os.path.join(self._folder, "CMakeLists.txt"), _MOST_BYTES)).decode("latin-1")
        except Unreadable:
            return ""

    @functools.cached_property
    def targets(self) -> tuple[frozenset[str], ...]:
        """The sources of each CMake target."""
        return _targets(Path(self._folder), self._cmake) if self._cmake else ()

    @functools.cached_property
    def declared_languages(self) -> tuple[tuple[frozenset[str], str], ...]:
        """``set_source_files_properties(a.cpp b.cpp PROPERTIES LANGUAGE CUDA)``: names and language."""
        return tuple((frozenset(re.split(r"[\s/\"]+", match[1])), match[2]) for match in _LANGUAGE.finditer(self._cmake))

    def facts(self) -> list[Any]:
        """All that its answers rest on: what stands here, and the dates of what is read."""
        more = [os.path.join("build", "compile_commands.json")] if "build" in self._names else []
        if "cmake" in self._names:
            more += [os.path.join("cmake", name) for name in sorted(_names_in(os.path.join(self._folder, "cmake")))]
        files = [name for name in (*sorted(self._names), *more) if name not in (".git", "build")]
        return [self.stat, sorted(self._names), {name: stat_of(os.path.join(self._folder, name)) for name in files}]


def _names_in(folder: str) -> frozenset[str]:
    try:
        return frozenset(name for name in os.listdir(folder) if name in _COUNT or name.endswith(".cmake"))
    except OSError:
        return frozenset()


_folders: dict[str, _Folder] = {}


def _look(folder: str) -> _Folder:
    if folder not in _folders:
        _folders[folder] = _Folder(folder)
    return _folders[folder]


def looked_at(before: int) -> dict[str, list[Any]] | None:
    """By folder: all that the answers so far rest on, but for those of `lies_beside`. None if a file changed since a time.

    A folder that changed since then is listed anew in any case: a second change in the same tick of the clock leaves no trace.
    """
    found = {folder: here.facts() for folder, here in _folders.items()}
    for facts in found.values():
        if any(said and max(said[:2]) >= before for said in facts[2].values()):
            return None
        if facts[0] and max(facts[0][:2]) >= before:
            facts[0] = None
    return found


def looks_the_same(folder: str, facts: list[Any]) -> bool:
    """Whether what was looked at in a folder is as it was."""
    stat, names, files = facts
    if stat != stat_of(folder) and names != sorted(_names_in(folder)):
        return False
    return all(said == stat_of(os.path.join(folder, name)) for name, said in files.items())


@functools.lru_cache(maxsize=4096)
def _up_to_root(folder: str) -> tuple[_Folder, ...]:
    """An absolute folder and those above it, up to the root of the repository."""
    found = [_look(folder)]
    while len(found) < _MOST_FOLDERS and not found[-1].is_root and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        found.append(_look(folder))
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def _around(folder: str) -> tuple[str, ...]:
    """A folder and those above it, as far as build files are looked for; of a relative one up to the current folder."""
    own = Path(folder)
    return tuple(map(str, (own, *list(own.parents)[:_MOST_FOLDERS])))


@question
def build_root(path: str) -> str:
    """The nearest folder above a file that a build file stands in; its own folder where there is none."""
    folders = _around(os.path.dirname(path))
    return next((folder for folder in folders if _look(folder).is_built), folders[0])


@question
def is_packaged(path: str) -> bool:
    """Whether a build file above a file of Python packages what stands below it, for others to import and call."""
    return any(_look(folder).packages for folder in _around(os.path.dirname(path)))


@question
def language_of_source(path: str) -> str:
    """The language that CMake files declare for a source (``CUDA``, ``CXX``); empty where nothing is said."""
    folder, name = os.path.split(path)
    for here in map(_look, _around(folder)):
        for sources, language in here.declared_languages:
            if name in sources:
                return language
        if here.is_root:
            break
    return ""


@question
def sources_built_with(path: str) -> frozenset[str]:
    """The sources of the CMake targets that a source is in, where they are written out."""
    found: set[str] = set()
    for here in map(_look, _around(os.path.dirname(path))):
        for sources in here.targets:
            if path in sources:
                found |= sources
        if here.is_root:
            break
    return frozenset(found - {path})


def _commands(folder: str) -> dict[str, bool]:
    """By source: whether the command in a folder's compile_commands.json asks for per-thread default streams."""
    found: dict[str, bool] = {}
    try:
        entries = json.loads(read_bytes(os.path.join(folder, "compile_commands.json"), _MOST_COMMANDS))
        for entry in entries:
            command = entry.get("command") or " ".join(entry.get("arguments", ()))
            source = os.path.abspath(os.path.join(folder, entry.get("directory", ""), entry["file"]))
            found[source] = cmake.PER_THREAD.search(command) is not None
    except (Unreadable, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
    return found


_TARGET = re.compile(r"\b(?:cuda_)?add_(?:library|executable)\s*\(([^()]*)\)|\b(?:pybind11_add_module|target_sources)\s*\(([^()]*)\)")
_VARIABLE = re.compile(r"\bset\s*\(\s*(\w+)\s([^()]*)\)")
_LANGUAGE = re.compile(r"set_source_files_properties\s*\(([^()]*?)PROPERTIES[^()]*?\bLANGUAGE\s+\"?(CUDA|CXX)\b")


def _targets(folder: Path, text: str) -> tuple[frozenset[str], ...]:
    for name, value in _VARIABLE.findall(text):
        text = text.replace(f"${{{name}}}", value)
    targets: dict[str, set[str]] = {}
    for match in _TARGET.finditer(text):
        name, *words = (match[1] or match[2] or "").replace('"', " ").split() or [""]
        targets.setdefault(name, set()).update(str(folder / word.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")) for word in words)
    return tuple(frozenset(sources) for sources in targets.values())


def _without_comments(data: bytes) -> bytes:
    return re.sub(rb"(?m)^\s*#.*$", b"", data)
