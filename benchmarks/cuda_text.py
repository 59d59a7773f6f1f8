"""A careful scan of C++ text for kernel launches and CUDA calls, without a grammar: what `cuda_reading.py` holds the front end against.

It knows comments, strings, directives and braces, and nothing else. Of streamlint it uses only the test which `#if` conditions a build for
NVIDIA GPUs decides; where that is not known, both branches count.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from streamlint.frontends.cuda_conditions import defined, holds

_OPAQUE = re.compile(
    r"//(?:[^\n\\]|\\\r?\n|\\.)*|/\*.*?(?:\*/|\Z)"
    r'|\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9A-Za-z_])'(?:[^'\\\n]|\\.)+'",
    re.S,
)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*([a-z_]+)\b((?:[^\n\\]|\\\r?\n|\\.)*)", re.M)
_DEFINED = re.compile(r"\s*([A-Za-z_]\w*)(?:\([^)]*\))?")
_LAUNCH = re.compile(r"<<\s*<(?![<=])")
_CALL = re.compile(r"(?<![\w.>])(?:\w+\s*::\s*|::\s*)*\b((?:cuda|cu)[A-Z]\w*)\s*(?:<[^;(){}]*>\s*)?\(")
_DEVICE = re.compile(r"\b(?:__global__|__device__)\b")
_WORD = re.compile(r"[A-Za-z_]\w*")
# What check macros ask on their way to an error: no work.
_QUERY = re.compile(r"cuda(?:Get|PeekAt)LastError|cudaGetError\w+|cuGetError\w+|cudaGetDevice")
_BRACES = re.compile(r"[(){}\[\];]")
# Words before a name that is called; any other word before it is the type of a declaration.
_STATEMENT_WORDS = frozenset("return else do throw case co_return co_await co_yield and or not new goto in typedef".split()) - {
    "typedef",
    "new",
}


@dataclass(frozen=True)
class Place:
    """One launch (the offset of its brackets) or call (the offset of its name)."""

    kind: str
    offset: int
    name: str = ""


@dataclass
class Scan:
    """What stands in a file's host code, what in `#define` bodies by macro, and what is left out on purpose."""

    mask: str
    places: list[Place] = field(default_factory=list)
    in_macros: dict[str, list[Place]] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)  # macro name -> text of its bodies
    device: int = 0
    not_compiled: int = 0


def masked(text: str) -> str:
    """The text with comments blanked and strings overwritten, at the same length."""

    def plain(match: re.Match[str]) -> str:
        word = match.group()
        if word[0] == "/":
            return re.sub(r"[^\n]", " ", word)
        return '"' + re.sub(r"[^\n]", "_", word[1:-1]) + '"'

    return _OPAQUE.sub(plain, text)


def scan(text: str) -> Scan:
    """Find the launches and calls of a file."""
    mask = masked(text)
    found = Scan(mask)
    directives = _Directives(mask)
    code = directives.without()
    for name, start, end in directives.macros:
        found.bodies[name] = found.bodies.get(name, "") + " " + mask[start:end]
        if places := [place for place in _places(mask, start, end, set()) if not _QUERY.fullmatch(place.name)]:
            found.in_macros.setdefault(name, []).extend(places)
    device = _Ranges(_device_bodies(code))
    dead = _Ranges(directives.dead)
    macros = set(found.bodies)
    for place in _places(code, 0, len(code), macros):
        if dead.holds(place.offset):
            found.not_compiled += 1
        elif device.holds(place.offset):
            found.device += 1
        else:
            found.places.append(place)
    return found


def uses(found: Scan, names: set[str]) -> Iterator[Place]:
    """Where host code names one of these macros."""
    directives = _Directives(found.mask)
    code = directives.without()
    left_out = (_Ranges(_device_bodies(code)), _Ranges(directives.dead))
    for match in _WORD.finditer(code):
        if match.group() in names and not any(ranges.holds(match.start()) for ranges in left_out):
            yield Place("use", match.start(), match.group())


def _places(code: str, start: int, end: int, macros: set[str]) -> Iterator[Place]:
    for match in _LAUNCH.finditer(code, start, end):
        if ">>" in code[match.end() : match.end() + 4000]:
            yield Place("launch", match.start())
    for match in _CALL.finditer(code, start, end):
        if match[1] not in macros and not _is_declared(code, match.start(), start):
            yield Place("call", match.start(1), match[1])


def _is_declared(code: str, at: int, low: int) -> bool:
    """Whether a type stands before a name, so that it is declared and not called."""
    before = code[max(low, at - 200) : at].rstrip()
    stars = before.rstrip("*& \t\n\\")
    word = re.search(r"([A-Za-z_]\w*)\Z", stars)
    if word is None:
        return before.endswith(">") and not before.endswith((">>", "->")) and re.search(r"\w\s*<[^;{}()]*>\Z", before) is not None
    if word[1] in _STATEMENT_WORDS:
        return False
    if len(stars) == len(before):
        return True
    head = stars[: word.start()].rstrip()
    return head.endswith((";", "{", "}", "const", "static", "inline", "extern", "__host__", "virtual")) or (not head and at < 200)


def _device_bodies(code: str) -> Iterator[tuple[int, int]]:
    """The bodies behind `__global__` and `__device__`, unless the same head says `__host__`."""
    for match in _DEVICE.finditer(code):
        depth = 0
        for token in _BRACES.finditer(code, match.end()):
            sign = token.group()
            depth += (sign in "([") - (sign in ")]")
            if depth < 0 or (not depth and sign in ";}"):
                break
            if sign == "{" and not depth:
                head = code[max(code.rfind(mark, 0, match.start()) for mark in ";{}") + 1 : token.start()]
                if "__host__" not in head:
                    yield match.start(), _closing(code, token.start())
                break


def _closing(code: str, opening: int) -> int:
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if match.group() == "{" else -1
        if not depth:
            return match.end()
    return len(code)


class _Ranges:
    def __init__(self, ranges: Iterator[tuple[int, int]] | list[tuple[int, int]]) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        for start, end in sorted(ranges):
            if self.ends and start < self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.starts.append(start)
                self.ends.append(end)

    def holds(self, offset: int) -> bool:
        position = bisect_right(self.starts, offset) - 1
        return position >= 0 and offset < self.ends[position]


class _Directives:
    """The `#define` bodies, and the branches that no build for NVIDIA GPUs compiles."""

    def __init__(self, mask: str) -> None:
        self.mask = mask
        self.spans: list[tuple[int, int]] = []
        self.macros: list[tuple[str, int, int]] = []
        self.dead: list[tuple[int, int]] = []
        self.values: dict[str, str] = {}
        self.stack: list[list[bool | None]] = []  # of each condition: whether it is compiled now, and whether a branch surely was
        self.since: int | None = None
        for match in _DIRECTIVE.finditer(mask):
            self.spans.append(match.span())
            self._read(match[1], match[2], match)
        if self.since is not None:
            self.dead.append((self.since, len(mask)))

    def without(self) -> str:
        """The text with the directives blanked."""
        pieces, done = [], 0
        for start, end in self.spans:
            pieces += [self.mask[done:start], re.sub(r"[^\n]", " ", self.mask[start:end])]
            done = end
        return "".join([*pieces, self.mask[done:]])

    def _read(self, word: str, rest: str, match: re.Match[str]) -> None:
        if word in ("if", "ifdef", "ifndef"):
            value = self._value(word, rest)
            self.stack.append([value is not False, value is True])
        elif word == "elif" and self.stack:
            state = self.stack[-1]
            value = holds(rest, self.values)
            state[0] = not state[1] and value is not False
            state[1] = state[1] or value is True
        elif word == "else" and self.stack:
            self.stack[-1][0] = not self.stack[-1][1]
        elif word == "endif" and self.stack:
            self.stack.pop()
        elif word == "define" and self.since is None and (name := _DEFINED.match(rest)):
            self.values[name[1]] = rest[name.end() :].strip()
            self.macros.append((name[1], match.start(2) + name.end(), match.end()))
        elif word == "undef" and self.since is None:
            self.values.pop(rest.strip(), None)
        self._mark(match)

    def _value(self, word: str, rest: str) -> bool | None:
        if word == "if":
            return holds(rest, self.values)
        value = defined(rest.split()[0] if rest.split() else "", self.values)
        return value if word == "ifdef" or value is None else not value

    def _mark(self, match: re.Match[str]) -> None:
        live = all(state[0] for state in self.stack)
        if not live and self.since is None:
            self.since = match.end()
        elif live and self.since is not None:
            self.dead.append((self.since, match.start()))
            self.since = None
