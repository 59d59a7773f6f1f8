"""Rewrites that mean nothing: other lines, other names, code that never runs; and one that may only silence: an unknown call."""

from __future__ import annotations

import ast
import itertools
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fuzzing.lexing import Token, statement_starts, tokens
from fuzzing.places import Change, Rewritten
from rename import File

OURS = re.compile(r"\b(?P<kind>[vfCa])_(?P<number>\d+)\b")  # names that the generators make
# No word of code that tests, measures or is rarely run: by such names SL020 and SL021 tell it from training, and mean to.
WORDS = ("x", "data", "stream", "pinned", "event", "batch", "host", "out", "sync", "tensor")

Rewrite = Callable[[str, str, "Choice"], "list[Change]"]


@dataclass(frozen=True)
class Choice:
    """Which of the possible places a rewrite takes (none: all of them), and in which manner at each."""

    places: tuple[int, ...]
    manners: tuple[int, ...]

    def of(self, count: int) -> list[tuple[int, int]]:
        """Indices below ``count`` with the manner at each."""
        chosen = sorted({place % count for place in self.places}) if self.places and count else range(count)
        return [(index, self.manners[number % len(self.manners)]) for number, index in enumerate(chosen)]


def rewritten(files: Sequence[File], rewrite: Rewrite, choice: Choice) -> dict[str, Rewritten] | None:
    """The files by name; None where the rewrite does not apply, or would break what parses."""
    made = {file.name: Rewritten(file.text, changes_of(file, rewrite, choice)) for file in files}
    if all(one.text == one.before for one in made.values()):
        return None
    if any(file.language == "python" and not parses(made[file.name].text) for file in files):
        return None
    return made


def changes_of(file: File, rewrite: Rewrite, choice: Choice) -> list[Change]:
    if file.language not in ("python", "cuda") or (file.language == "python" and not parses(file.text)):
        return []
    return rewrite(file.text, file.language, choice)


def parses(text: str) -> bool:
    """Whether Python can read it, as text with plain line ends."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return "\r" not in text and "\f" not in text


# Other lines --------------------------------------------------------------------------------------------------------------------

_PYTHON_LINES = ("\n", "# torch.cuda.synchronize()\n", "\n\n    # event.wait(stream)\n", "# -*- cut -*-\n")
_PYTHON_BREAKS = ("\n", "\n        ", "  # stream.synchronize()\n", " ")
_CPP_BREAKS = ("\n", "\n        ", " /* cudaDeviceSynchronize(); */ ", " // cudaStreamSynchronize(stream);\n", "  ")
_CPP_SPACES = ("\n", "\n        ", "  ")


def reformat(text: str, language: str, choice: Choice) -> list[Change]:
    """Blank lines, comments, and breaks where the language allows them."""
    found = tokens(text, language)
    return _python_format(text, found, choice) if language == "python" else _cpp_format(found, choice)


def _python_format(text: str, found: list[Token], choice: Choice) -> list[Change]:
    spots: list[tuple[int, tuple[str, ...]]] = [(start, _PYTHON_LINES) for start, _ in _line_starts(text)]
    pairs = itertools.pairwise(found)
    spots += [(token.start, _PYTHON_BREAKS) for before, token in pairs if token.depth and _may_break(before, token)]
    return [
        Change(spots[index][0], spots[index][0], spots[index][1][manner % len(spots[index][1])]) for index, manner in choice.of(len(spots))
    ]


def _may_break(before: Token, token: Token) -> bool:
    """A name and its bracket stay together, and a dot and what it leads to: the linter looks for words such as ``.item(``."""
    if before.text == "." or (before.kind == "name" and token.text in "(["):
        return False
    return token.kind not in ("space", "comment")


def _line_starts(text: str) -> list[tuple[int, str]]:
    return statement_starts(text, "python")


def _cpp_format(found: list[Token], choice: Choice) -> list[Change]:
    spots = [
        (token.start, _CPP_BREAKS if _takes_comment(before, token) else _CPP_SPACES)
        for before, token in itertools.pairwise(found)
        if token.kind not in ("space", "comment", "directive") and before.kind not in ("directive",) and _separate(before, token)
    ]
    return [Change(spots[at][0], spots[at][0], spots[at][1][manner % len(spots[at][1])]) for at, manner in choice.of(len(spots))]


def _takes_comment(before: Token, token: Token) -> bool:
    """Nobody writes one between a name and its bracket, or in ``extern "C"``: there the linter looks at the text."""
    return token.text != "(" and token.kind != "string" and before.text != "extern"


def _separate(before: Token, token: Token) -> bool:
    if "\\" in (before.text, token.text) or (before.text, token.text) == ("(", ")") or before.text == "operator":
        return False  # tree-sitter reads `operator()` with nothing in between
    return before.kind in ("space", "comment") or before.text in "(){},;" or token.text in "(){},;"


def join_lines(text: str, language: str, choice: Choice) -> list[Change]:
    """C++ on few lines: white space that could be any becomes one blank."""
    if language != "cuda":
        return []
    found = tokens(text, language)
    spots = [
        token
        for before, token, after in zip(found, found[1:], found[2:], strict=False)
        if token.kind == "space" and before.kind != "directive" and after.kind != "directive" and not before.text.startswith("//")
    ]
    return [Change(spots[index].start, spots[index].end, " ") for index, _ in choice.of(len(spots))]


# Other names --------------------------------------------------------------------------------------------------------------------


def rename(text: str, language: str, choice: Choice) -> list[Change]:
    """Names that a generator made are called otherwise: all of them, in each file alike."""
    return [Change(m.start(), m.end(), _name(m["kind"], int(m["number"]), choice.manners), keeps=True) for m in OURS.finditer(text)]


def _name(kind: str, number: int, manners: Sequence[int]) -> str:
    word = WORDS[(number + manners[0]) % len(WORDS)]
    return f"{word.title()}{number}" if kind == "C" else f"{word}_{kind}{number}"


# Code that never runs -----------------------------------------------------------------------------------------------------------

_PYTHON_DEAD = (
    "if False:\n    print('never')\n",
    "if False:\n    torch.cuda.synchronize()\n",
    "def never_called_{n}(x):\n    return x\n",
    "if 0:\n    never_{n} = 1\nelse:\n    pass\n",
    "while False:\n    break\n",
)
_CPP_DEAD = (
    "\n#if 0\ncudaDeviceSynchronize();\n#endif\n",
    "\nif (false) {{ never_{n}(); }}\n",
    "\n#ifdef NEVER_DEFINED_{n}_\nint never_{n} = 0;\n#endif\n",
    "\nauto never_called_{n} = [](int x) {{ return x; }};\n",
    "\n;\n",
)


def add_dead(text: str, language: str, choice: Choice) -> list[Change]:
    """``if False``, ``#if 0``, functions that nobody calls."""
    return _put_in(text, language, choice, _PYTHON_DEAD if language == "python" else _CPP_DEAD)


def add_unknown(text: str, language: str, choice: Choice) -> list[Change]:
    """A call of a function that nobody knows, with arguments that nothing else can reach."""
    python = ("unknown_{n}()\n", "unknown_{n}(1, 'text')\n", "fresh_{n} = unknown_{n}([])\n", "unknown.of_{n}(object())\n")
    return _put_in(
        text, language, choice, python if language == "python" else ("\nunknown_{n}();\n", "\nunknown_{n}(1, 2.0);\n"), _NOT_BEFORE
    )


# Between a copy and its wait it is work that the copy holds up (SL001).
_NOT_BEFORE = re.compile(r"\s*(?:[^\n;{}]*ynchroni|.*[Ww]ait)")


def _put_in(text: str, language: str, choice: Choice, pieces: Sequence[str], not_before: re.Pattern[str] | None = None) -> list[Change]:
    spots = statement_starts(text, language)
    if language == "python":
        spots = spots[_head(text) :]
    spots = [spot for spot in spots if not_before is None or not not_before.match(text, spot[0])]
    changes = []
    for index, manner in choice.of(len(spots)):
        at, indent = spots[index]
        lines = pieces[manner % len(pieces)].format(n=index).splitlines(keepends=True)
        changes.append(Change(at, at, "".join(indent + line for line in lines)))
    return changes


def _head(text: str) -> int:
    """Statements at the start of a module that must stay first: a docstring and imports."""
    count = 0
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Import | ast.ImportFrom) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            count += 1
        else:
            break
    return count
