"""Cython to Python of the same length, line by line, so that places stay those of the file.

What Python cannot say is blanked, and noted: the types of parameters and members, the names that ``cdef extern`` blocks bring from C++,
which functions Python cannot see. ``&x`` becomes ``~x``; the offsets distinguish the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamlint.frontends.cython_lines import Line, closing, commas, logical_lines, masked, pieces, top_level
from streamlint.support.lines import line_starts, place_at
from streamlint.support.records import field, record

_EXTERN = re.compile(r"cdef\s+extern\s+from\b")
_CLASS = re.compile(r"(?:cdef|cpdef)\s+(?:(?:public|api|readonly)\s+)*class\b")
_LAYOUT = re.compile(
    r"(?:(?:cdef|cpdef)\s+(?:(?:public|api|packed|extern)\s+)*(?:enum|struct|union|cppclass|packed|fused)\b|ctypedef\b|(?:cdef\s+)?extern\b)"
)
_SECTION = re.compile(r"cdef(?:\s+(?:public|api|readonly|nogil|inline))*\s*:")
_INNER_SECTION = re.compile(r"(?:public|readonly|inline|nogil)\s*:")
_MODIFIERS = re.compile(r"(?:cdef|cpdef)\b(?:\s+(?:public|api|readonly|inline|extern|static)\b)*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
_DECLARED = re.compile(r"([A-Za-z_]\w*)\s*((?:\[[^][]*\]\s*)*)$")
_EXTERN_HEAD = re.compile(r"from\s*(?:\"([^\"]*)\"|'([^']*)'|<([^>]*)>|\*)(?:\s*namespace\s*[\"']([^\"']*)[\"'])?")
_INCLUDE = re.compile(r"include\s+[\"']([^\"']+)[\"']")
_CAST = re.compile(r"<\s*[A-Za-z_][\w.\s,:*&?\[\]]*>|<\s*\([^<>]*\)\s*>")
_SUFFIXED = re.compile(r"(?:0[xX][0-9a-fA-F]+|\d+)([uUlL]+)")
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")
_BEFORE_OPERAND = frozenset(
    "return in and or not if else elif while yield print is lambda assert del raise from import await for with".split()
)
_WORD_SWAPS = {"DEF": "0;", "IF": "if", "ELIF": "elif", "ELSE": "else"}


@record(frozen=True, slots=True)
class Declared:
    """A parameter's or a member's C type: its name without pointers, and how many there are."""

    type: str
    pointers: int = 0


@record(slots=True)
class Header:
    """A function as Cython declares it. ``cdef``: Python does not see it; ``takes_gil``: its body begins with the GIL."""

    name: str
    cdef: bool
    takes_gil: bool
    types: dict[str, Declared]


@record(slots=True)
class Translation:
    """The Python text, and what is lost in it."""

    text: str = ""
    addresses: set[int] = field(default_factory=set)  # offsets of `~` that were `&`
    headers: dict[int, Header] = field(default_factory=dict)  # by row
    members: dict[str, dict[str, Declared]] = field(default_factory=dict)  # by class
    includes: list[str] = field(default_factory=list)


def translate(text: str) -> Translation:
    """Cython as Python."""
    return _Translator(text).run()


class _Translator:
    def __init__(self, text: str) -> None:
        self.text = text
        self.out = list(text)
        self.mask = masked(text)
        self.found = Translation()
        self.lines = list(logical_lines(self.mask))
        self.rows = line_starts(text)
        self.sections: list[int] = []  # indentations of open `cdef:` blocks
        self.classes: list[tuple[int, str]] = []  # open classes
        self.functions: list[int] = []  # indentations of open functions

    def run(self) -> Translation:
        index = 0
        while index < len(self.lines):
            index = self.line(index)
        self.found.text = "".join(self.out)
        return self.found

    def line(self, index: int) -> int:
        line = self.lines[index]
        self.sections = [indent for indent in self.sections if indent < line.indent]
        self.classes = [held for held in self.classes if held[0] < line.indent]
        self.functions = [indent for indent in self.functions if indent < line.indent]
        mask = line.mask
        first = _NAME.match(mask)
        word = first.group() if first else ""
        if _EXTERN.match(mask):
            return self.extern(index)
        if _CLASS.match(mask):
            self.class_(line)
        elif _LAYOUT.match(mask):
            return self.dropped(index)
        elif _SECTION.fullmatch(mask.strip()) or (self.sections and _INNER_SECTION.fullmatch(mask.strip())):
            self.put(line.start, "if 1:".ljust(len(mask.rstrip())))
            self.sections.append(line.indent)
        elif self.sections or word in ("cdef", "cpdef"):
            self.declaration(line)
        elif word == "def" or mask.startswith("async def"):
            self.function(line)
        else:
            self.statement(line, word)
        return index + 1

    # --- output

    def put(self, at: int, text: str) -> None:
        self.out[at : at + len(text)] = text

    def blank(self, start: int, end: int) -> None:
        self.out[start:end] = [c if c == "\n" else " " for c in self.text[start:end]]

    def pass_over(self, line: Line) -> None:
        """Nothing is left of a line, nor of its decorators."""
        for other in (line, *self.decorators(line)):
            self.blank(other.start, other.end)
            self.put(other.start, "0")

    def decorators(self, line: Line) -> Iterator[Line]:
        index = self.lines.index(line)
        while index and self.lines[index - 1].mask.startswith("@"):
            index -= 1
            yield self.lines[index]

    def dropped(self, index: int) -> int:
        """A declaration with its block, if it has one."""
        line = self.lines[index]
        self.pass_over(line)
        index += 1
        if line.mask.rstrip().endswith(":"):
            while index < len(self.lines) and self.lines[index].indent > line.indent:
                self.blank(self.lines[index].start, self.lines[index].end)
                index += 1
        return index

    # --- what C++ brings

    def extern(self, index: int) -> int:
        line = self.lines[index]
        head = _EXTERN_HEAD.search(self.text, line.start, line.end)
        if head is not None and (header := head.group(1) or head.group(2) or head.group(3)):
            self.found.includes.append(header)
        return self.dropped(index)

    # --- classes, functions

    def class_(self, line: Line) -> None:
        mask = line.mask
        if not mask.rstrip().endswith(":"):
            self.pass_over(line)
            return
        match = _CLASS.match(mask)
        assert match is not None
        self.put(line.start, "class".ljust(match.end()))
        name = _NAME.search(mask, match.end())
        for extra in re.finditer(r"\[[^]]*\]", mask):
            self.blank(line.start + extra.start(), line.start + extra.end())
        if name is not None:
            self.classes.append((line.indent, name.group()))
            self.found.members.setdefault(name.group(), {})

    def declaration(self, line: Line) -> None:
        """``cdef`` in front of a function, a method that is only declared, or variables."""
        match = _MODIFIERS.match(line.mask)
        begin = match.end() if match else 0
        opening = _parameters_at(line.mask, begin)
        if opening is not None and top_level(line.mask, ":", closing(line.mask, opening.end() - 1)) is not None:
            self.function(line)
        elif opening is not None and "=" not in line.mask[: opening.end()]:
            self.pass_over(line)
        else:
            self.variables(line, begin)

    def function(self, line: Line) -> None:
        mask = line.mask
        match = _MODIFIERS.match(mask)
        opening = _parameters_at(mask, match.end() if match else 0)
        if opening is None:
            self.pass_over(line)
            return
        close = closing(mask, opening.end() - 1)
        colon = top_level(mask, ":", close)
        if colon is None:
            self.pass_over(line)
            return
        tail = mask[close + 1 : colon]
        start = line.start
        if match is not None:
            self.blank(start, start + opening.start(1))
            self.put(start, "def")
        if match is not None or "->" not in tail:
            self.blank(start + close + 1, start + colon)
        types: dict[str, Declared] = {}
        for low, high in pieces(mask, opening.end(), close):
            self.parameter(line, low, high, types)
        taken = re.search(r"\bwith\s+gil\b", tail) is not None
        self.functions.append(line.indent)
        is_cdef = match is not None and match.group().startswith("cdef")
        self.found.headers[place_at(self.rows, start + opening.start(1))[0]] = Header(opening.group(1), is_cdef, taken, types)
        if mask[colon + 1 :].strip():
            self.expressions(start + colon + 1, line.end)

    def parameter(self, line: Line, low: int, high: int, types: dict[str, Declared]) -> None:
        mask = line.mask
        equals = top_level(mask, "=", low, high)
        left_end = equals if equals is not None else high
        if equals is not None:
            value = mask[equals + 1 : high].strip()
            if value in ("*", "?"):
                self.put(line.start + equals + 1, "0".ljust(high - equals - 1))
            else:
                self.expressions(line.start + equals + 1, line.start + high)
        left = mask[low:left_end]
        if top_level(mask, ":", low, left_end) is not None or left.strip() in ("*", "/", "...", "") or left.strip().startswith("*"):
            return
        left = re.sub(r"\b(?:not|or)\s+None\b", lambda m: " " * len(m.group()), left)
        named = re.search(r"\(\s*\*+\s*([A-Za-z_]\w*)", left) or _DECLARED.search(left.rstrip())
        if named is None:
            self.blank(line.start + low, line.start + left_end)
            self.put(line.start + low, "_")
            return
        self.blank(line.start + low, line.start + left_end)
        self.put(line.start + low + named.start(1), named.group(1))
        before = left[: named.start(1)]
        if before.strip():
            types[named.group(1)] = _declared(before)

    def variables(self, line: Line, begin: int) -> None:
        """``cdef T a = e, *b``: the assignments stay."""
        mask, start = line.mask, line.start
        owner = self.classes[-1][1] if self.classes and line.indent > self.classes[-1][0] and not self.in_function(line) else None
        kept = False
        separators: dict[int, str] = {}
        first_type = ""
        for low, high in pieces(mask, begin, len(mask)):
            equals = top_level(mask, "=", low, high)
            left = mask[low : equals if equals is not None else high]
            named = _DECLARED.search(left.rstrip())
            if named is None:
                self.blank(start + low, start + high)
                continue
            self.blank(start + low, start + low + len(left))
            before = left[: named.start(1)]
            first_type = first_type or before
            if owner is not None:
                stars = before.count("*") if low != begin else 0
                held = _declared(first_type)
                self.found.members[owner][named.group(1)] = Declared(held.type, max(held.pointers, stars))
            if equals is None:
                continue
            self.put(start + low + named.start(1), named.group(1))
            self.expressions(start + equals + 1, start + high)
            separators[low - 1] = ";" if kept else " "
            kept = True
        self.blank(start, start + begin)
        for comma in commas(mask, begin):
            self.put(start + comma, separators.get(comma, " "))
        self.put(start, "0;" if kept else "0")

    def in_function(self, line: Line) -> bool:
        """Whether a line within a class stands in one of its methods."""
        return any(indent < line.indent for indent in self.functions)

    # --- statements

    def statement(self, line: Line, word: str) -> None:
        mask, start = line.mask, line.start
        if word == "cimport":
            self.put(start, "import ")
        elif word == "from" and (cimport := re.search(r"\bcimport\b", mask)):
            self.put(start + cimport.start(), " import")
        elif word == "include" and (included := _INCLUDE.match(self.text, start)):
            self.found.includes.append(included.group(1))
            self.pass_over(line)
        elif word in _WORD_SWAPS:
            self.put(start, _WORD_SWAPS[word].ljust(len(word)))
            self.expressions(start + len(word), line.end)
        elif word == "property" and mask.rstrip().endswith(":"):
            self.put(start, "class".ljust(len(word)))
        elif word == "for" and (loop := re.match(r"for\s+\w+\s+(from\b.*):", mask, re.DOTALL)):
            self.put(start + loop.start(1), "in _".ljust(loop.end(1) - loop.start(1)))
        else:
            self.expressions(start, line.end)

    def expressions(self, start: int, end: int) -> None:
        """Casts, addresses, ``new``, ``sizeof``: what Python's expressions lack."""
        before = ""
        at = start
        while at < end:
            token = _TOKEN.search(self.mask, at, end)
            if token is None:
                return
            text, at = token.group(), token.end()
            operand = (
                not before or before in _BEFORE_OPERAND or (before not in ("'", '"') and not (before[-1].isalnum() or before[-1] in "_)]}"))
            )
            if text == "<" and operand and (cast := _CAST.match(self.mask, token.start(), end)):
                self.blank(cast.start(), cast.end())
                at = cast.end()
                continue
            if text == "&" and operand and self.mask[at : at + 1] != "&":
                self.put(token.start(), "~")
                self.found.addresses.add(token.start())
            elif text == "new" and operand and re.match(r"\s+[A-Za-z_]", self.mask[at:end]):
                self.blank(token.start(), at)
                at = self.new(at, end)
                before = "x"
                continue
            elif text == "sizeof" and (inner := re.match(r"\s*\(", self.mask[at:end])):
                close = closing(self.mask, at + inner.end() - 1)
                self.blank(at + inner.end(), close)
                self.put(at + inner.end(), "0")
                at = close
            elif suffixed := _SUFFIXED.fullmatch(text):
                self.blank(token.start() + suffixed.start(1), token.end())
            before = text

    def new(self, at: int, end: int) -> int:
        """``new T[int](x)``: the name of the class alone."""
        name = re.compile(r"\s*[A-Za-z_][\w.]*").match(self.mask, at, end)
        if name is None:
            return at
        at = name.end()
        if self.mask[at : at + 1] == "[":
            close = closing(self.mask, at)
            self.blank(at, close + 1)
            at = close + 1
        return at


# --- declarations ------------------------------------------------------------


def _parameters_at(mask: str, begin: int) -> re.Match[str] | None:
    """The name and the bracket of a function's parameters: the first name that is followed by one, outside of brackets."""
    equals = top_level(mask, "=", begin)
    for match in _CALLED.finditer(mask, begin, equals if equals is not None else len(mask)):
        before = mask[begin : match.start()]
        if before.count("(") == before.count(")") and before.count("[") == before.count("]"):
            return match
    return None


def _declared(text: str) -> Declared:
    """A type as written: without modifiers, template arguments and pointers."""
    pointers = text.count("*") + text.count("&")
    plain = re.sub(r"\[[^]]*\]|[*&]|\b(?:const|unsigned|signed|struct|readonly|public|volatile)\b", " ", text)
    names = re.findall(r"[A-Za-z_][\w.]*", plain)
    return Declared(names[-1] if names else "int", pointers)
