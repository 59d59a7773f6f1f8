"""The user's own rows, checked against the libraries, types and modules that are known: a typing error would silence findings."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from streamlint.models import Models, builtin, is_covered
from streamlint.models.effects import EFFECTS
from streamlint.models.keys import ROWS, Key
from streamlint.models.tables import rows
from streamlint.models.vocabulary import ModelError, nearest
from streamlint.support.shipped import head_of, model_files, text_of
from streamlint.support.toml import read_rows

__all__ = ["ModelError", "check", "is_module", "kind_of", "libraries", "shipped_types"]

UserRows = Sequence[tuple[str, Mapping[str, Any]]]  # what to name in an error, and the table
# Effects that work on a current stream, or in memory of an allocator: they need to know whose.
OF_A_LIBRARY = frozenset(
    "factory compute read transfer copy memset launch stream set_stream scope event record wait synchronize collective trim".split()
)
BARE_TYPES = ("pointer", "element")  # results that have no type of their own (C++)
_PYTHON_NAME = re.compile(r"[\w*]+(\.[\w*]+)*")
_CPP_NAME = re.compile(r"[\w*]+(::~?[\w*]+)*(\.[\w*]+)*(::operator\W{1,3})?")
_TYPE_ROW = re.compile(r"^\[\[type\]\]\n(?:.+\n?)*", re.MULTILINE)


@functools.cache
def libraries() -> tuple[str, ...]:
    """The libraries of the shipped rows."""
    return tuple(sorted({found for path in model_files() if (found := head_of(path).get("library"))}))


@functools.cache
def shipped_types(language: str) -> dict[str, str]:
    """The kinds of the types that have a shipped row, by name or pattern; of all languages where none is named.

    Only the rows of types are parsed: a configuration is read in each run.
    """
    found: dict[str, str] = {}
    for path in model_files():
        if language in ("", "cython", head_of(path).get("language")):
            for block in _TYPE_ROW.findall(text_of(path)):
                for row in (read_rows(block) or {}).get("type", ()):
                    names = row["names"]
                    found.update(dict.fromkeys([names] if isinstance(names, str) else names, row["kind"]))
    return found


def check(own: UserRows, others: UserRows = ()) -> None:
    """Check rows among others of the user's that hold as well.

    Raises ModelError; it names the place by the number of the table, the kind of row, the number of the row, and the key.
    """
    types = [*_own_types(others), *_own_types(own)]
    for number, (source, data) in enumerate(own):
        try:
            Models().add(dict(data), source)
            _check_library(data, source)
            for kind in ROWS:
                for place, names, effect, values in _rows(data, kind, source):
                    _check_names(names, str(data.get("language", "")), kind, place)
                    for key in EFFECTS[effect].keys if effect else ROWS[kind][1]:
                        if key.name in values:
                            _check_value(key, str(values[key.name]), str(data.get("language", "")), types, place)
                    if kind == "type" and "base" in values:
                        _check_kind(str(values["kind"]), str(values["base"]), types, place)
        except ModelError as error:
            raise ModelError(str(error), number, *error.at) from None


Place = tuple[str, tuple[str | int, ...]]  # what to name in an error, and where it is


def _rows(data: Mapping[str, Any], kind: str, source: str) -> Iterator[tuple[Place, tuple[str, ...], str, dict[str, Any]]]:
    for number, (names, effect, values) in enumerate(rows(data, kind, source)):
        text = f"{source}: {names[0]}" if effect else f"{source}: {kind} {names[0]}"
        yield (text, (kind, number)), names, effect, values


def _own_types(own: UserRows) -> Iterator[tuple[str, str, str]]:
    """Name, kind and language of the types that the user describes."""
    for source, data in own:
        for names, _, values in rows(data, "type", source):
            yield from ((name, str(values["kind"]), str(data.get("language", ""))) for name in names)


def _check_library(data: Mapping[str, Any], source: str) -> None:
    library = data.get("library")
    if library is not None and library not in libraries():
        raise ModelError(f"{source}: library '{library}' is unknown; {nearest(str(library), libraries())}", "library")
    if library is not None or data.get("language") == "cuda":
        return
    for kind in ("call", "attribute"):
        for (text, at), names, effect, _ in _rows(data, kind, source):
            if effect in OF_A_LIBRARY and not all("::" in name for name in names):
                advice = 'add the library whose current stream the call uses, such as library = "torch", or language = "cuda" for C++'
                raise ModelError(f"{text}: effect '{effect}' needs the key 'library' of its table; {advice}", *at)


def _check_names(names: Iterable[str], language: str, kind: str, place: Place) -> None:
    text, at = place
    for name in names:
        if _PYTHON_NAME.fullmatch(name) and not (language == "cuda" and "." in name):
            continue
        if kind == "trait" and name in libraries():
            continue
        if "::" in name and _CPP_NAME.fullmatch(name) and language != "python":
            continue
        if name.endswith("()"):
            hint = f"; did you mean '{name[:-2]}'?"
        elif "::" in name and language == "python":
            hint = '; a name of C++ needs language = "cuda"'
        elif language == "cuda":
            hint = f"; did you mean '{name.replace('.', '::')}'?" if _PYTHON_NAME.fullmatch(name) else ""
        else:
            hint = ""
        wanted = "written as in the code: package.function, Type.method, or in C++ space::Type::method; * matches any characters"
        raise ModelError(f"{text}: '{name}' is no name{hint or f'; a name is {wanted}'}", *at, "names")


def _check_value(key: Key, value: str, language: str, types: Sequence[tuple[str, str, str]], place: Place) -> None:
    text, at = place
    if key.kind == "library" and value not in libraries():
        raise ModelError(f"{text}: {key.name}: library '{value}' is unknown; {nearest(value, libraries())}", *at, key.name)
    if key.kind == "type" and value not in BARE_TYPES and kind_of(value, language, types) is None:
        known = {*shipped_types(language), *(name for name, _, _ in types)}
        hint = nearest_name(value, known) or "add a row [[tool.streamlint.models.type]] for it"
        raise ModelError(f"{text}: {key.name}: type '{value}' is unknown; {hint}", *at, key.name)
    if key.kind == "module" and not is_module(value, language, types):
        hint = nearest_name(value, _modules(language)) or "no row is about it"
        raise ModelError(f"{text}: {key.name}: module '{value}' is unknown; {hint}", *at, key.name)


def _check_kind(kind: str, base: str, types: Sequence[tuple[str, str, str]], place: Place) -> None:
    text, at = place
    known = kind_of(base, "", types)
    if known is not None and known != kind:
        raise ModelError(f"{text}: kind '{kind}' does not go with base '{base}', which is of kind '{known}'", *at, "kind")


def kind_of(name: str, language: str, types: Iterable[tuple[str, str, str]]) -> str | None:
    """The kind of a type, from the user's rows or from the shipped ones."""
    own = [(known, kind) for known, kind, spoken in types if not language or spoken in ("", language)]
    for known, kind in [*own, *shipped_types(language).items()]:
        if known == name or ("*" in known and is_covered(known.split("*"), name)):
            return kind
    return None


def nearest_name(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest dotted name; empty where none is near."""
    import difflib  # start-up: for mistakes alone

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"did you mean '{close[0]}'?" if close else ""


def is_module(name: str, language: str, types: Iterable[tuple[str, str, str]]) -> bool:
    """Whether some row is about a name, or about a member of it."""
    return kind_of(name, language, types) is not None or name in _modules(language)


@functools.cache
def _modules(language: str) -> frozenset[str]:
    names: set[str] = set()
    for spoken in (language,) if language else ("python", "cuda"):
        models = builtin(spoken)
        for name in (*models.calls, *models.attributes, *models.types):
            separator = "::" if "::" in name else "."
            parts = name.split(separator)
            names.update(separator.join(parts[:end]) for end in range(1, len(parts) + 1))
    return frozenset(names)
