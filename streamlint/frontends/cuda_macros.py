"""Macro expansion that remembers where each piece of text stood.

Macros of the file are expanded; dispatch macros run their blocks once; a check macro gives way to the call that it checks. Text from an
argument keeps its place, text from a macro body takes the place of the outermost use.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from streamlint.frontends import cuda_checks
from streamlint.frontends.cuda_pieces import Piece, Pieces, Use
from streamlint.frontends.cuda_preprocess import Macro, Preprocessed, masked

Definitions = list[tuple[int, str, Macro | None]]
"""Offset, name and macro; None where a name is undefined."""

MAX_DEPTH = 6
_BUDGET = 6_000_000  # characters of replacements; a piece of them counts as many
_COST = 100

# Macros of libraries whose headers are unknown: those of Python's C API, and PyTorch's around it, stand where a statement would. A
# ``TORCH_MODULE`` is a shared pointer to its module, and may be called as the module may.
LIBRARY_MACROS = {
    name: Macro(name, None, False, body)
    for name, body in {
        "Py_BEGIN_ALLOW_THREADS": "{ PyThreadState* _save = PyEval_SaveThread();",
        "Py_BLOCK_THREADS": "PyEval_RestoreThread(_save);",
        "Py_UNBLOCK_THREADS": "_save = PyEval_SaveThread();",
        "Py_END_ALLOW_THREADS": "PyEval_RestoreThread(_save); }",
        "Py_RETURN_NONE": "return Py_None",
        "Py_RETURN_TRUE": "return Py_True",
        "Py_RETURN_FALSE": "return Py_False",
        "PyObject_HEAD": "PyObject ob_base;",
        "HANDLE_TH_ERRORS": "{",
        "END_HANDLE_TH_ERRORS": "}",
        "END_HANDLE_TH_ERRORS_PYBIND": "}",
    }.items()
} | {
    "END_HANDLE_TH_ERRORS_RET": Macro("END_HANDLE_TH_ERRORS_RET", ("value",), False, "}"),
    "TORCH_MODULE": Macro("TORCH_MODULE", ("Name",), False, "using Name = Name##Impl"),
    "TORCH_MODULE_IMPL": Macro("TORCH_MODULE_IMPL", ("Name", "Impl"), False, "using Name = Impl"),
}

_BODY_TOKEN = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<paste>\s*##\s*)|#\s*(?P<quoted>[A-Za-z_]\w*)|(?P<word>[A-Za-z_]\w*)')
_API = re.compile(r"(?:cuda|cu|nccl|cublas|cudnn|cufft|cusparse|curand)[A-Z_]\w*")
_KEYWORD = re.compile(r"__\w+__|__restrict|defined|public|private|protected|if|for|while|return|const|inline|static|virtual|final|override")
_OTHER_VENDOR = re.compile(r"\s*(?:hip|musa|mu|sycl|maca|mc)[A-Z]?\w*\s*(?:\(|$)")
_DISPATCHING = re.compile(r"[A-Z][A-Z0-9_]{2,}|[A-Z]\w*(?:_DISPATCH|DISPATCH_|_SWITCH|SWITCH_)\w*")
_BLOCK = re.compile(r"\s*(?:\{|(?:\(\s*)?\[[^\]\n]*\]\s*(?:[({]|mutable\b|->|__)|using\s)")
_LAMBDA = re.compile(r"\s*(?:\(\s*)?\[")
_NESTED = re.compile(r"\s*[A-Z]\w+\s*\(")
_NEXT = re.compile(r"\s*(\S?)")
_OPENING = re.compile(r"\s*\(")
_NO_ANGLE = re.compile(r"<<\s*<|>>\s*>(?=\()|->|<<=?|[<>]=")
_BRACKET = re.compile(r"<<\s*<(?!<)|>>\s*>|[][(){},;]")


class Argument(NamedTuple):
    """One argument of a use: its place in the text that holds it."""

    start: int
    end: int


class Expander:
    """Expands the macros of one file."""

    def __init__(self, source: Preprocessed, definitions: Definitions) -> None:
        self.source = source
        self.macros: dict[str, Macro] = dict(LIBRARY_MACROS)
        self.pending = list(reversed(definitions))
        names = {name for _, name, macro in definitions if macro and not _is_foreign(macro)}
        lower = sorted((name for name in names if len(name) == 1 or not name[0].isupper()), key=len, reverse=True)
        self.pattern = re.compile(r"\b(?:" + "|".join(["[A-Z]\\w+", *map(re.escape, lower)]) + r")\b")
        self.names = names
        self.budget = _BUDGET

    def run(self) -> Pieces:
        """The whole file, expanded."""
        pieces: list[Piece] = []
        done = 0
        for offset, text in sorted(self.source.insertions.items()):
            pieces += [Piece(self.source.text[done:offset], done, None), Piece(text, -1, Use(offset, offset + 1, offset + 1))]
            done = offset
        pieces.append(Piece(self.source.text[done:], done, None))
        whole = Pieces(pieces)
        return Pieces(self.expand(whole, frozenset(), 0, statements=True, top=True))

    def expand(self, given: Pieces, hidden: frozenset[str], depth: int, *, statements: bool, top: bool = False) -> list[Piece]:
        """``given`` with its macros replaced. ``statements``: uses in it may stand where a statement begins."""
        mask = self.source.mask if top and given.text == self.source.text else masked(given.text)
        out: list[Piece] = []
        at = done = 0
        while match := self.pattern.search(mask, at):
            at = match.end()
            if top:
                self.advance(given.origin(match.start()))
            use = _Site(self, given, mask, match, hidden, depth, statements)
            replacement = use.replacement()
            if replacement is None:
                continue
            out += given.cut(done, match.start())
            out += replacement
            at = done = use.end
        return out + given.cut(done, len(given.text))

    def advance(self, origin: int) -> None:
        """Apply the definitions that stand before ``origin``."""
        while self.pending and 0 <= self.pending[-1][0] <= origin:
            _, name, macro = self.pending.pop()
            if macro is None:
                self.macros.pop(name, None)
            elif name in self.names:
                self.macros[name] = macro


class _Site:
    """One possible use of a macro."""

    def __init__(
        self, expander: Expander, given: Pieces, mask: str, match: re.Match[str], hidden: frozenset[str], depth: int, statements: bool
    ) -> None:
        self.expander = expander
        self.given = given
        self.mask = mask
        self.name = match.group()
        self.start = match.start()
        self.name_end = self.end = match.end()
        self.hidden = hidden
        self.depth = depth
        self.statements = statements
        self.args: list[Argument] = []

    def replacement(self) -> list[Piece] | None:
        macro = self.expander.macros.get(self.name)
        if macro is None:
            return self.unknown()
        if self.name in self.hidden or self.depth >= MAX_DEPTH or self.expander.budget <= 0:
            return None
        self.expander.budget -= len(self.given.pieces)  # what it takes to cut the text that holds the use
        if macro.params is None:
            use = self.use()
            return self.rescan([Piece(macro.body, -1, use)]) if macro.body else [Piece(" ", -1, use)]
        if not self.read_arguments():
            return None
        blocks = [self.is_block(argument) for argument in self.args]
        if any(blocks) and not self.runs_block_once(macro, blocks):
            return self.dispatched(blocks)
        return self.checked(macro) or self.substituted(macro)

    def use(self) -> Use:
        """The place of the use: in the file where the name stands there, else that of the macro whose body holds it."""
        piece, inside = self.given.piece_at(self.start)
        if piece.origin < 0:
            return piece.use or Use(0, 0, 0)
        start = piece.origin + inside
        last, within = self.given.piece_at(self.end - 1)
        end = last.origin + within + 1 if last.origin >= 0 else start + len(self.name)
        return Use(start, start + len(self.name), max(end, start + len(self.name)))

    def rescan(self, pieces: list[Piece]) -> list[Piece]:
        """Look for further macros in what a macro was replaced with."""
        joined = Pieces(pieces)
        self.expander.budget -= len(joined.text) + _COST * len(pieces)
        found = self.expander.expand(joined, self.hidden | {self.name}, self.depth + 1, statements=self.statements and self.at_statement())
        return found + self.terminator(joined.text)

    def at_statement(self) -> bool:
        before = self.mask[max(0, self.start - 200) : self.start].rstrip()
        return before[-1:] in (";", "{", "}", ")") or (not before and self.start < 200) or before.endswith(("else", "do"))

    def terminator(self, text: str) -> list[Piece]:
        """A semicolon, where a macro stands as a statement and has none."""
        follows = self.next_character(self.end)
        if not self.statements or not (not follows or follows == "}" or follows.isidentifier()) or not self.at_statement():
            return []
        return [Piece(";", -1, self.use())] if text.rstrip()[-1:] not in ("", ";", "}", "{", ":", ",") else []

    def next_character(self, offset: int) -> str:
        """The next character that is no blank, "" at the end."""
        match = _NEXT.match(self.mask, offset)
        return match.group(1) if match else ""

    # --- arguments

    def read_arguments(self) -> bool:
        """Find the arguments of a function-like use; False if there are none."""
        opening = _OPENING.match(self.mask, self.name_end)
        if opening is None:
            return False
        depth = 0
        start = opening.end()
        chevrons = False
        for match in _BRACKET.finditer(self.mask, opening.end() - 1):
            token = match.group()
            if token in ("(", "[", "{"):
                depth += 1
            elif token in (")", "]", "}"):
                depth -= 1
            elif token[0] in "<>":
                chevrons = token[0] == "<"
            if (token == "," and depth == 1 and not chevrons) or not depth:
                self.args.append(Argument(start, match.start()))
                start = match.end()
            if not depth:
                self.end = match.end()
                self.args = self.with_statements_whole(self.args)
                return token == ")"
        return False

    def with_statements_whole(self, args: list[Argument]) -> list[Argument]:
        """Statements among the arguments may hold commas between ``<`` and ``>``, which the preprocessor does not care about."""
        if not any(_has_top_semicolon(self.mask[argument.start : argument.end]) for argument in args):
            return args
        whole: list[Argument] = []
        for argument in args:
            if whole and (_opens_angle(before := self.mask[whole[-1].start : whole[-1].end]) or _has_top_semicolon(before)):
                whole[-1] = Argument(whole[-1].start, argument.end)
            else:
                whole.append(argument)
        return whole

    def is_block(self, argument: Argument) -> bool:
        """Whether an argument is a lambda or holds statements."""
        mask = self.mask[argument.start : argument.end]
        if _BLOCK.match(mask):
            return True
        if _NESTED.match(mask) and "{" in mask:
            return self.name.isupper() and ("DISPATCH" in self.name or "SWITCH" in self.name or ";" in mask)
        return ";" in mask and _has_top_semicolon(mask)

    def pieces(self, argument: Argument, *, statements: bool = False) -> list[Piece]:
        given = Pieces(self.given.cut(argument.start, argument.end))
        if not given.pieces:
            return []
        return self.expander.expand(given, self.hidden, self.depth, statements=statements)

    # --- replacements

    def unknown(self) -> list[Piece] | None:
        """A macro without a known definition: its blocks run once; a semicolon is put in where a statement lacks one."""
        if not _DISPATCHING.fullmatch(self.name) or not self.read_arguments():
            return None
        blocks = [self.is_block(argument) for argument in self.args]
        if any(blocks) and self.next_character(self.end) != "{":
            return self.dispatched(blocks)
        end = self.terminator("x")
        if not end:
            self.end = self.name_end
            return None
        inside = self.expander.expand(Pieces(self.given.cut(self.name_end, self.end)), self.hidden, self.depth, statements=False)
        return self.given.cut(self.start, self.name_end) + inside + end

    def dispatched(self, blocks: list[bool]) -> list[Piece]:
        """The blocks of a dispatch macro, one after the other: lambdas called, statements in braces."""
        use = self.use()
        found: list[Piece] = []
        chosen = [argument for argument, block in zip(self.args, blocks, strict=True) if block]
        plain = all(_LAMBDA.match(self.mask, argument.start) for argument in chosen)
        for position, argument in enumerate(chosen):
            if plain or _LAMBDA.match(self.mask, argument.start):
                before, after = ("," if position and plain else "") + "(", ")()" + ("" if plain else ";")
            else:
                before, after = "{", ";}"
            found += [Piece(before, -1, use), *self.pieces(argument, statements=after == ";}"), Piece(after, -1, use)]
        return found + (self.terminator("x") if plain else [])

    def runs_block_once(self, macro: Macro, blocks: list[bool]) -> bool:
        """Whether plain substitution already runs each block once (and no further macro decides about it)."""
        params = macro.params or ()
        for position, block in enumerate(blocks):
            if not block:
                continue
            param = params[min(position, len(params) - 1)] if params else ""
            if len(re.findall(rf"\b{re.escape(param)}\b", macro.body)) != 1:
                return False
        return not re.search(r"\b[A-Z][A-Z0-9_]{2,}\s*\(", macro.body) or cuda_checks.has_effects(macro.body, self.expander.macros)

    def checked(self, macro: Macro) -> list[Piece] | None:
        """The checked expression alone, for a macro that does nothing but check it."""
        position = cuda_checks.checked_parameter(macro, self.expander.macros)
        if position is None or position >= len(self.args):
            return None
        last = len(self.args) - 1 if macro.variadic and position == len(macro.params or ()) - 1 else position
        argument = Argument(self.args[position].start, self.args[last].end)
        mask = self.mask[argument.start : argument.end].strip()
        if not mask or mask[0] == '"' or (len(self.args) > 1 and position != last and not mask.endswith(")")):
            return None
        return self.pieces(argument) + self.terminator("x")

    def substituted(self, macro: Macro) -> list[Piece] | None:
        params = macro.params or ()
        if len(self.args) == 1 and not self.mask[self.args[0].start : self.args[0].end].strip() and not (params and not macro.variadic):
            self.args = []
        if len(self.args) < len(params) - macro.variadic or (len(self.args) > len(params) and not macro.variadic):
            return None
        values = dict(zip(params, self.args, strict=False))
        if macro.variadic:
            rest = self.args[len(params) - 1 :]
            values[params[-1]] = Argument(rest[0].start, rest[-1].end) if rest else Argument(self.name_end, self.name_end)
        pieces = _Substitution(self, macro.body, values).pieces()
        return self.rescan(pieces) if self.expander.budget > 0 else None  # what it holds was expanded meanwhile


class _Substitution:
    """A macro body with its parameters replaced."""

    def __init__(self, site: _Site, body: str, values: dict[str, Argument]) -> None:
        self.site = site
        self.body = body
        self.values = values
        self.use = site.use()
        self.found: list[Piece] = []
        self.expanded: dict[str, list[Piece]] = {}

    def pieces(self) -> list[Piece]:
        done = 0
        for match in _BODY_TOKEN.finditer(self.body):
            kind = match.lastgroup
            word = match.group(kind) if kind else ""
            if kind == "text" or (kind in ("word", "quoted") and word not in self.values):
                continue
            self.literal(self.body[done : match.start()])
            done = match.end()
            if kind == "quoted":
                self.literal('"' + re.sub(r"\s+", " ", self.raw(word)).replace("\\", "\\\\").replace('"', '\\"') + '"')
            elif kind == "word":
                self.argument(word, match.start(), match.end())
            elif not self.raw(self.next_word(match.end())).strip() and self.next_word(match.end()) in self.values:
                self.drop_comma()
            elif self.found and self.found[-1].text.rstrip().endswith(",") and self.next_word(match.end()) in self.values:
                self.literal(" ")
        self.literal(self.body[done:])
        return self.found

    def literal(self, text: str) -> None:
        if text:
            self.found.append(Piece(text, -1, self.use))

    def raw(self, word: str) -> str:
        argument = self.values.get(word)
        return self.site.given.text[argument.start : argument.end].strip() if argument else ""

    def next_word(self, at: int) -> str:
        match = re.compile(r"[A-Za-z_]\w*").match(self.body, at)
        return match.group() if match else ""

    def argument(self, word: str, start: int, end: int) -> None:
        argument = self.values[word]
        pasted = self.body[:start].rstrip().endswith("##") or self.body[end:].lstrip().startswith("##")
        if pasted:
            text = self.site.given.text
            low, high = argument.start, argument.end
            while low < high and text[low].isspace():
                low += 1
            while high > low and text[high - 1].isspace():
                high -= 1
            self.found += self.site.given.cut(low, high)
            return
        if word not in self.expanded:
            self.expanded[word] = self.site.pieces(argument)
        self.found += self.expanded[word]

    def drop_comma(self) -> None:
        if self.found:
            last = self.found[-1]
            self.found[-1] = Piece(last.text.rstrip().removesuffix(","), last.origin, last.use)


def _is_foreign(macro: Macro) -> bool:
    """Names of the language and the aliases of compatibility headers stay as they are written."""
    if _KEYWORD.fullmatch(macro.name):
        return True
    return bool(_API.fullmatch(macro.name)) and (macro.params is None or bool(_OTHER_VENDOR.match(macro.body)))


def _opens_angle(mask: str) -> bool:
    plain = _NO_ANGLE.sub(" ", mask)
    return plain.count("<") > plain.count(">")


def _has_top_semicolon(mask: str) -> bool:
    depth = 0
    for match in _BRACKET.finditer(mask):
        token = match.group()
        depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
        if token == ";" and not depth:
            return True
    return False
