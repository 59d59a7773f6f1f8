"""What a CMakeLists.txt says of default streams: which commands give nvcc the option, to which sources. Nothing is ever run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from streamlint.support.records import record

PER_THREAD = re.compile(r"CUDA_API_PER_THREAD_DEFAULT_STREAM(?!\s*=\s*0)|default-stream[\"',;\s=]+per-thread")
_COMMAND = re.compile(r"(?<![\w$])([A-Za-z_]\w*)\s*\(")
_COMMENT = re.compile(r"#\[(=*)\[.*?\]\1\]|(\"(?:[^\"\\]|\\.)*\")|#[^\n]*", re.S)
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)')
_ON = re.compile(r"ON|TRUE|YES|Y|1", re.I)
_OF_TARGET = ("target_compile_options", "target_compile_definitions", "set_target_properties", "target_link_libraries")
_MAKES_TARGET = ("add_library", "add_executable", "cuda_add_library", "cuda_add_executable", "pybind11_add_module", "python_add_library")
_KEYWORDS = frozenset("PRIVATE PUBLIC INTERFACE STATIC SHARED MODULE OBJECT EXCLUDE_FROM_ALL WITH_SOABI OPTIONS".split())


@record(frozen=True, slots=True)
class Command:
    """One command with its words; ``conditions`` are those of the ``if`` blocks around it."""

    name: str
    words: tuple[str, ...]
    conditions: tuple[str, ...]


def said_of(text: str, folder: Path, source: Path) -> bool | None:
    """Whether a CMakeLists.txt in ``folder`` gives a source per-thread default streams: None if that hangs on an option, False if not."""
    if PER_THREAD.search(text) is None:
        return False
    commands = list(read(text))
    sources = _sources(commands, folder)
    options = {c.words[0]: bool(_ON.fullmatch(c.words[-1])) for c in commands if c.name == "option" and len(c.words) > 1}
    answer: bool | None = False
    for command in commands:
        if not _asks(command) or not _reaches(command, sources, folder, source):
            continue
        holds = [_holds(condition, options) for condition in command.conditions]
        if all(held is True for held in holds):
            return True
        if all(held is not False for held in holds):
            answer = None
    return answer


def read(text: str) -> Iterator[Command]:
    """The commands of a file, in order, without comments."""
    text = _COMMENT.sub(lambda match: match.group(2) or " ", text)
    conditions: list[str] = []
    at = 0
    while match := _COMMAND.search(text, at):
        end = _closing(text, match.end())
        at = end + 1
        name, words = match[1].lower(), tuple(quoted or plain for quoted, plain in _WORD.findall(text[match.end() : end]))
        if name == "if":
            conditions.append(" ".join(words))
        elif name in ("elseif", "else") and conditions:
            conditions[-1] = f"?{conditions[-1]}" if name == "elseif" else _opposite(conditions[-1])
        elif name == "endif" and conditions:
            conditions.pop()
        else:
            yield Command(name, words, tuple(conditions))


def _opposite(condition: str) -> str:
    return condition.removeprefix("NOT ") if condition.startswith("NOT ") else f"NOT {condition}"


def _closing(text: str, start: int) -> int:
    depth = 1
    for match in re.compile(r"[()]").finditer(text, start):
        depth += 1 if match.group() == "(" else -1
        if not depth:
            return match.start()
    return len(text)


def _holds(condition: str, options: dict[str, bool]) -> bool | None:
    """An ``if``'s condition: an option by its default (which the user may change: only ON is taken at its word), else unknown."""
    negated = condition.startswith("NOT ")
    name = condition.removeprefix("NOT ")
    if name in options:
        return True if options[name] != negated else None
    return True if _is_plain(name) and not negated else None


def _is_plain(name: str) -> bool:
    """Conditions that a CUDA build, with NVIDIA's compiler, fulfils."""
    if name == "CMAKE_CUDA_COMPILER_ID STREQUAL NVIDIA":
        return True
    return name.upper() in ("CUDA", "CUDA_FOUND", "CUDATOOLKIT_FOUND", "CMAKE_CUDA_COMPILER", "USE_CUDA", "WITH_CUDA", "ENABLE_CUDA")


def _asks(command: Command) -> bool:
    if command.name in ("option", "message", "set_property") and command.name != "set_property":
        return False
    return PER_THREAD.search(" ".join(command.words)) is not None


def _reaches(command: Command, sources: dict[str, frozenset[Path]], folder: Path, source: Path) -> bool:
    """Whether what a command says holds for a source: that of its target, the one that it names, or all."""
    named = _named(command)
    if command.name == "set_source_files_properties" and named is not None:
        return any("$" in word or _path(folder, word) == source for word in named)
    if not _compiles(" ".join(command.words), source):
        return False
    if command.name not in (*_OF_TARGET, *_MAKES_TARGET) or not command.words:
        return True
    targets = named if command.name == "set_target_properties" and named is not None else command.words[:1]
    if any(target not in sources for target in targets):
        return True  # its sources are not written out
    return any(source in sources[target] for target in targets) or not any(source in held for held in sources.values())


def _named(command: Command) -> tuple[str, ...] | None:
    """What a command gives properties to."""
    return command.words[: command.words.index("PROPERTIES")] if "PROPERTIES" in command.words else None


def _compiles(words: str, source: Path) -> bool:
    """Whether what words say is not for another language than that of a source."""
    if "COMPILE_LANGUAGE:CXX" in words and source.suffix == ".cu":
        return False
    only_cuda = "COMPILE_LANGUAGE:CUDA" in words or "CMAKE_CUDA_FLAGS" in words or "CUDA_NVCC_FLAGS" in words
    return not only_cuda or source.suffix not in (".cpp", ".cc", ".cxx", ".c")


def _sources(commands: list[Command], folder: Path) -> dict[str, frozenset[Path]]:
    """The sources of the targets that are written out in full."""
    variables: dict[str, tuple[str, ...]] = {}
    targets: dict[str, set[Path] | None] = {}
    for command in commands:
        if command.name == "set" and command.words:
            variables[command.words[0]] = command.words[1:]
        elif command.name in (*_MAKES_TARGET, "target_sources") and command.words:
            words = [inner for word in command.words[1:] for inner in _replaced(word, variables) if inner not in _KEYWORDS]
            held = targets.setdefault(command.words[0], set())
            if any("$" in word for word in words) or "$" in command.words[0]:
                targets[command.words[0]] = None
            elif held is not None:
                held.update(_path(folder, word) for word in words)
    return {name: frozenset(held) for name, held in targets.items() if held}


def _replaced(word: str, variables: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    match = _VARIABLE.fullmatch(word)
    return variables[match[1]] if match and match[1] in variables else (word,)


def _path(folder: Path, word: str) -> Path:
    for prefix in ("${CMAKE_CURRENT_SOURCE_DIR}/", "${CMAKE_CURRENT_LIST_DIR}/", "${PROJECT_SOURCE_DIR}/", "./"):
        word = word.removeprefix(prefix)
    return folder / word
