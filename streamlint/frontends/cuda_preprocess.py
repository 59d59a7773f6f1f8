"""Before the parse: comments and branches that are not compiled are blanked, ``#define`` bodies kept.

Every step keeps the length of the text, so offsets stay those of the file; what must be put in besides is returned as insertions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamlint.frontends.cuda_conditions import ARCHITECTURE, defined, holds
from streamlint.support.records import field, record

CHOICE = "streamlint_either_branch"

_OPAQUE = re.compile(
    r"//(?:[^\n\\]|\\\r?\n|\\.)*|/\*.*?(?:\*/|\Z)"
    r'|R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+'",
    re.S,
)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*([a-z_]+)\b((?:[^\n\\]|\\\r?\n|\\.)*)", re.M)
_DEFINE = re.compile(r"\s*([A-Za-z_]\w*)(\(([^)]*)\))?(.*)", re.S)
_CONTINUATION = re.compile(r"\\\r?\n[ \t]*")
_VISIBLE = re.compile(r"[^\n]")
_CODE_BRACE = re.compile(r"(?:\)\s*(?:(?:const|noexcept|override|final|mutable)\s*)*(?:->[\w\s:<>*&]*)?|\belse|\bdo|\btry|\]|[;{}:])\s*\Z")
_BEFORE_BRACE = 200


@record(frozen=True, slots=True)
class Macro:
    """One ``#define``. ``params`` is None for object-like macros; a variadic tail is called ``__VA_ARGS__`` unless it has a name."""

    name: str
    params: tuple[str, ...] | None
    variadic: bool
    body: str


@record(slots=True)
class Preprocessed:
    """The text with everything blanked that is not compiled, and what the directives said."""

    text: str
    mask: str
    includes: list[str] = field(default_factory=list)
    definitions: list[tuple[int, str, Macro | None]] = field(default_factory=list)  # None where a name is undefined
    insertions: dict[int, str] = field(default_factory=dict)
    included_at: list[tuple[int, int]] = field(default_factory=list)  # the offsets of each include's argument
    defined: list[tuple[int, str, int]] = field(default_factory=list)  # offset, name, number of includes above


def blank(text: str) -> str:
    """As many blanks, with the line ends kept."""
    return _VISIBLE.sub(" ", text) if "\n" in text else " " * len(text)


def without_comments(text: str) -> str:
    """``text`` with blanks for comments."""
    return _OPAQUE.sub(lambda match: blank(match.group()) if match.group()[0] == "/" else match.group(), text)


def comments_of(text: str) -> Iterator[tuple[int, str]]:
    """The comments of a text, each with its offset."""
    return ((match.start(), match.group()) for match in _OPAQUE.finditer(text) if match.group()[0] == "/")


def masked(text: str) -> str:
    """``text`` with the inside of strings and characters overwritten, for searches by shape."""
    return _OPAQUE.sub(lambda match: '"' + _VISIBLE.sub("_", match.group()[1:-1]) + '"', text)


def preprocess(text: str, architecture: int = 0) -> Preprocessed:
    """Read the directives of a file and take the branches that a CUDA host build takes, or a build for the device of an architecture."""
    code = without_comments(text)
    reader = _Directives(code, masked(code))
    if architecture:
        reader.values[ARCHITECTURE] = str(architecture)
    reader.read()
    return reader.result()


@record(slots=True)
class _Branch:
    outer_live: bool
    taken: bool | None
    opened: re.Match[str]
    middle: re.Match[str] | None = None
    in_code: bool = False  # whether a statement may stand where it is opened
    plain: bool = True  # no #elif, and nothing in the #else branch that counts beyond it
    before: _Mark | None = None  # where the #else branch is read as if it were compiled, what was read before it


@record(slots=True)
class _Mark:
    """How far a file was read."""

    pieces: int
    spans: int
    counted: int
    braces: list[int]
    last: str


class _Directives:
    def __init__(self, code: str, mask: str) -> None:
        self.code = code
        self.mask = mask
        self.pieces: list[str] = []
        self.done = 0
        self.live = True
        self.stack: list[_Branch] = []
        self.values: dict[str, str] = {}
        self.found = Preprocessed("", "")
        self.spans: list[tuple[int, int]] = []  # of live code
        self.counted = 0  # how many of them are in what follows
        self.braces: list[int] = []
        self.last = ""

    def read(self) -> None:
        for match in _DIRECTIVE.finditer(self.mask):
            self.copy(match.start())
            self.pieces.append(blank(self.code[match.start() : match.end()]))
            self.done = match.end()
            self.handle(match)
        self.copy(len(self.code))

    def copy(self, end: int) -> None:
        part = self.code[self.done : end]
        self.pieces.append(part if self.live else blank(part))
        if self.live:
            self.spans.append((self.done, end))
        self.done = end

    def handle(self, match: re.Match[str]) -> None:
        word = match.group(1)
        rest = self.code[match.start(2) : match.end(2)]
        if word in ("if", "ifdef", "ifndef"):
            self.open(word, rest, match)
        elif word in ("elif", "else", "endif"):
            self.close(word, rest, match)
        elif self.live and word in ("define", "undef", "include"):
            if tried := self.tried():
                for branch in tried:
                    branch.plain = False
            else:
                self.keep(word, rest, match)
        elif self.live and word == "error" and self.stack:
            # Nobody compiles a branch that stops the compiler.
            branch = self.stack[-1]
            if branch.before is not None:
                branch.plain = False
            elif branch.taken is None:
                branch.taken, self.live = False, False

    def open(self, word: str, rest: str, match: re.Match[str]) -> None:
        value: bool | None = False
        if self.live:
            value = self.value(word, rest)
        self.stack.append(_Branch(self.live, value, match, in_code=value is None and self.in_code()))
        self.live = self.live and value is not False

    def value(self, word: str, rest: str) -> bool | None:
        if word == "if":
            return holds(rest, self.values)
        value = defined(rest.split()[0] if rest.split() else "", self.values)
        if word == "ifndef" and value is not None:
            return not value
        return value

    def close(self, word: str, rest: str, match: re.Match[str]) -> None:
        if not self.stack:
            return
        branch = self.stack[-1]
        if word == "endif":
            self.stack.pop()
            self.choose(branch, match)
            self.live = branch.outer_live
        elif word == "elif":
            branch.plain = False
            value = holds(rest, self.values) if branch.outer_live and branch.taken is False else False
            self.live = branch.outer_live and value is not False
            branch.taken = value if branch.taken is False else branch.taken
        else:
            branch.middle = match
            if self.is_choice(branch):
                branch.before = _Mark(len(self.pieces), len(self.spans), self.counted, [*self.braces], self.last)
            self.live = branch.outer_live and (branch.taken is False or branch.before is not None)

    def tried(self) -> list[_Branch]:
        """The branches around this place that are read as if they were compiled."""
        return [branch for branch in self.stack if branch.before is not None]

    def is_choice(self, branch: _Branch) -> bool:
        """Whether both branches of a condition may stand in the code: it is not known, and the first one is statements."""
        if branch.taken is not None or branch.middle is None or not branch.plain or not branch.outer_live or not branch.in_code:
            return False
        return _are_statements(self.live_mask(branch.opened.end(), branch.middle.start()))

    def choose(self, branch: _Branch, end: re.Match[str]) -> None:
        """Both branches of an unknown condition, where both are statements, become an ``if`` that is not known."""
        middle, mark = branch.middle, branch.before
        if mark is None or middle is None:
            return
        if branch.plain and _are_statements(self.live_mask(middle.end(), end.start())):
            for at, text in ((branch.opened.start(), f"if({CHOICE}){{"), (middle.start(), "}else{"), (end.start(), "}")):
                self.found.insertions[at] = text
        else:
            self.pieces[mark.pieces :] = [blank(piece) for piece in self.pieces[mark.pieces :]]
            self.found.insertions = {at: text for at, text in self.found.insertions.items() if at < middle.start()}
        del self.spans[mark.spans :]
        self.counted, self.braces, self.last = mark.counted, mark.braces, mark.last

    def live_mask(self, start: int, stop: int) -> str:
        """What is compiled of a part of the text, directives left out."""
        parts = []
        for begin, end in reversed(self.spans):
            if end <= start:
                break
            parts.append(self.mask[max(begin, start) : min(end, stop)])
        return " ".join(reversed(parts))

    def in_code(self) -> bool:
        """Whether a statement may stand here, behind what was read so far. Each part of the text is looked at once."""
        for start, end in self.spans[self.counted :]:
            for match in re.finditer(r"[{}]", self.mask[start:end]):
                if match.group() == "{":
                    self.braces.append(start + match.start())
                elif self.braces:
                    self.braces.pop()
            self.last = self.mask[start:end].rstrip()[-1:] or self.last
        self.counted = len(self.spans)
        return self.last in (";", "{", "}") and bool(self.braces) and _CODE_BRACE.search(self.before(self.braces[-1])) is not None

    def before(self, offset: int) -> str:
        """The live code in front of an offset."""
        found = ""
        for start, end in reversed(self.spans):
            if end <= offset - _BEFORE_BRACE:
                break
            found = self.mask[max(start, offset - _BEFORE_BRACE) : min(end, offset)] + " " + found
        return found.rstrip() if found else ""

    def keep(self, word: str, rest: str, match: re.Match[str]) -> None:
        if word == "include":
            self.found.includes.append(rest.strip().strip('<>"'))
            self.found.included_at.append(_stripped(rest, match.start(2)))
            return
        macro = _macro(rest) if word == "define" else None
        name = macro.name if macro else rest.strip()
        self.found.definitions.append((match.end(), name, macro))
        if macro:
            self.found.defined.append((self.code.index(name, match.start(2)), name, len(self.found.includes)))
            self.values[name] = macro.body
        else:
            self.values.pop(name, None)

    def result(self) -> Preprocessed:
        self.found.text = "".join(self.pieces)
        self.found.mask = masked(self.found.text)
        return self.found


def _stripped(text: str, start: int) -> tuple[int, int]:
    """Where ``text``, which begins at ``start``, begins and ends without the blanks around it."""
    begin = start + len(text) - len(text.lstrip())
    return begin, begin + len(text.strip())


def _macro(rest: str) -> Macro | None:
    match = _DEFINE.match(_CONTINUATION.sub(" ", rest))
    if match is None:
        return None
    body = match.group(4).strip()
    if match.group(2) is None:
        return Macro(match.group(1), None, False, body)
    params = [param.strip() for param in match.group(3).split(",") if param.strip()]
    variadic = bool(params) and params[-1].endswith("...")
    if variadic:
        params[-1] = params[-1][:-3].strip() or "__VA_ARGS__"
    return Macro(match.group(1), tuple(params), variadic, body)


def _are_statements(mask: str) -> bool:
    mask = mask.strip()
    if not mask or mask[-1] not in ";}" or mask[0] in ")}]=+-*/%&|<>?:.,;" or re.match(r"(?:else|case|default|namespace|template)\b", mask):
        return False
    depth = 0
    for match in re.finditer(r"[(){}\[\]]", mask):
        depth += 1 if match.group() in "({[" else -1
        if depth < 0:
            return False
    return depth == 0
