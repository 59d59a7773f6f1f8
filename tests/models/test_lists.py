"""No name of a library's function, member, type or package stands in a second list: what code asks of names is a row of the models.

A list is a set, a tuple, a list, the keys of a dictionary, or a text that is split. It counts if two names of rows stand in it that are no
words of streamlint's own or of Python, or one that is written with its package.
"""

from __future__ import annotations

import ast
import builtins
import functools
import keyword
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import streamlint
from streamlint.findings import Severity
from streamlint.ir import opcodes
from streamlint.models import builtin
from streamlint.models.effects import EFFECTS
from streamlint.models.keys import LANGUAGES, ROWS
from streamlint.models.user_rows import libraries

PACKAGE = Path(streamlint.__file__).parent
# What these are about: rows themselves, programs that are run on a GPU, recordings of runs with the names of calls; words of options and
# of formats.
ELSEWHERE = {"models", "verify", "litmus", "trace", "record", "cuda_model", "cli.py", "commands", "config", "report", "runner", "server"}
# Lists that are left, by file and name (of the constant, else of the function), and why.
LANGUAGE = "the language and its standard types, which the front end has to know: no library that another could stand for"
BEFORE = "read in the text of a file before there are rows: the file is chosen, split or built by it"
FIX = "fixes know places and text alone (NARROW in tests/test_house.py)"
WORDS = "how a finding or a summary calls the libraries"
SAME = "the same memory under its names in two languages"
OWN = "words of streamlint's own"
EXCEPTIONS = {
    **dict.fromkeys(("build_files/python.py:_BUILDERS", "build_files/python.py:_GUARDS"), BEFORE),
    **dict.fromkeys(("discovery/seams.py:_MAY_BE_NATIVE", "discovery/seams.py:_MAY_CAPTURE"), BEFORE),
    "program/definitions.py:HOLDS_CPP": BEFORE,
    **dict.fromkeys(("checks/sl001_unpinned_non_blocking.py:_ARRAYS", "checks/sl027_foreign_library_stream.py:NAMES"), WORDS),
    **dict.fromkeys(("checks/sl023_timing_event_for_sync.py:_HELP", "discovery/survey.py:TITLES", "findings/__init__.py:_api"), WORDS),
    "checks/sl004_cuda_call_in_host_callback.py:CudaCallInHostCallback._what": WORDS,
    "facts/cpp/bindings.py:_TYPES": SAME,
    "transfer/origins.py:Origins._is_inside": "two types that have rows, for what is known by the name of a method alone",
    **dict.fromkeys(("facts/files/cpp_templates.py:_FUNDAMENTAL", "ir/cpp.py:PLAIN", "transfer/work.py:_NUMBERS"), LANGUAGE),
    **dict.fromkeys(("transfer/cpp_sizes.py:WIDTHS", "transfer/cpp_sizes.py:WHOLE"), LANGUAGE),
    **dict.fromkeys(
        ("facts/values/declared.py:_SCALARS", "facts/values/declared.py:_ITERABLES", "facts/values/declared.py:_MAPPINGS"), LANGUAGE
    ),
    **dict.fromkeys(
        ("facts/values/declared.py:_MODULES", "facts/values/keyed.py:_MAPPINGS", "facts/files/scopes.py:Scopes._classes_named"), LANGUAGE
    ),
    **dict.fromkeys(
        ("facts/values/language.py:_NAMES", "facts/code/language_members.py:_OF_QUEUES", "facts/code/functions.py:Function.is_property"),
        LANGUAGE,
    ),
    **dict.fromkeys(
        ("facts/values/selectors.py:HOST_WORDS", "transfer/sizes.py:_CPP_TYPES", "support/notebooks/magics.py:PYTHON_CELLS"), OWN
    ),
    "waits/holders.py:__all__": OWN,
    **dict.fromkeys(("fix/launches.py:STREAM_LAST", "fix/launches.py:POLICIES", "fix/launches.py:NULLS", "fix/pinned_cpp.py:_edits"), FIX),
    **dict.fromkeys(("fix/sl001_unpinned_non_blocking.py:FACTORIES", "fix/sl001_unpinned_non_blocking.py:METHODS"), FIX),
    **dict.fromkeys(("fix/sl003_alloc_in_loop.py:PAIRS", "fix/sl003_alloc_in_loop.py:UNFILLED", "fix/sl003_alloc_in_loop.py:KEEPS"), FIX),
    **dict.fromkeys(("fix/sl009_gil_held_across_cuda_call.py:_space", "fix/waits.py:_of_named_stream"), FIX),
}
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::)\w+)+")


@functools.cache
def own_words() -> frozenset[str]:
    """Words that are streamlint's own, Python's or C++'s before they are a library's."""
    keys = [*(key for _, keys in ROWS.values() for key in keys), *(key for effect in EFFECTS.values() for key in effect.keys)]
    words = {*EFFECTS, *ROWS, *dir(builtins), *keyword.kwlist, *(key.name for key in keys), *(word for key in keys for word in key.words)}
    words |= {*LANGUAGES, *dir(dict), *dir(list), *dir(set), *dir(str), *map(str, Severity), *opcodes.__dict__}
    return frozenset(words | {name.lower() for name in words})


@functools.cache
def names() -> tuple[frozenset[str], frozenset[str]]:
    """The names of rows: by their last parts, and the packages that they begin with."""
    found: set[str] = set(libraries())
    heads: set[str] = set()
    for models in map(builtin, ("python", "cuda", "cython")):
        known = [*models.calls, *models.operators, *models.attributes, *models.types, *models.constants]
        known += [name for named in models.traits.values() for name in named]
        for name in known:
            parts = name.replace("::", ".").split(".")
            found.add(parts[-1].strip("*"))
            heads.add(parts[0])
    return frozenset(one for one in found - own_words() if re.fullmatch(r"[A-Za-z]\w{2,}|at|is_\w+", one)), frozenset(heads)


def texts_of(node: ast.AST) -> list[str]:
    """The texts of a list."""
    parts: Iterable[ast.expr | None] = ()
    if isinstance(node, ast.Set | ast.List | ast.Tuple):
        parts = node.elts
    elif isinstance(node, ast.Dict):
        parts = node.keys
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        held = node.func.value
        return held.value.split() if isinstance(held, ast.Constant) and isinstance(held.value, str) else []
    return [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def is_list_of_names(texts: list[str]) -> bool:
    known, heads = names()
    dotted = [one for one in texts if _DOTTED.fullmatch(one) and re.split(r"\.|::", one)[0] in heads]
    return bool(dotted) or len(known.intersection(texts)) > 1


def lists_in(tree: ast.AST, within: str = "") -> Iterator[tuple[str, int, list[str]]]:
    """The lists of names in a tree: the constant or the function in which each stands, its row, and its texts."""
    for node in ast.iter_child_nodes(tree):
        place = within
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            place = f"{within}.{node.name}".strip(".")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not within:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Tuple):
                continue  # constants with words of their own
            place = ast.unparse(target)
        texts = texts_of(node)
        if texts and is_list_of_names(texts):
            yield place, node.lineno, texts
        yield from lists_in(node, place)


def found_in(path: Path) -> dict[str, str]:
    """The lists of a file: where each stands, and what is in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = path.relative_to(PACKAGE).as_posix()
    return {f"{file}:{place}": f"{row}: {' '.join(texts)}" for place, row, texts in lists_in(tree)}


def test_no_name_stands_in_a_second_list() -> None:
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in ELSEWHERE]
    found = {place: said for path in files for place, said in found_in(path).items()}
    assert {place: said for place, said in found.items() if place not in EXCEPTIONS} == {}, "say it in a row: docs/models.md"
    assert sorted(EXCEPTIONS) == sorted(place for place in EXCEPTIONS if place in found), "an exception that is no more"


def test_lists_are_seen() -> None:
    text = '_A = frozenset({"detach", "clone"})\n_B = {"numpy.copyto": 1}\n_C = "squeeze reshape".split()\n_D = ("float", "read")\n'
    assert [place for place, _, _ in lists_in(ast.parse(text))] == ["_A", "_B", "_C"]
