"""The closed vocabulary of model rows: how names and places are written, and how the value of a key is read.

A model file is TOML: keys of its head, then tables ``[[type]]``, ``[[call]]``, ``[[attribute]]``, ``[[constant]]``, ``[[step]]``,
``[[round]]``, ``[[trait]]``.
``keys.py`` and ``effects/`` describe all keys. The triggers of a shipped file are byte strings of 5 bytes or more, at least one of which
is in any file that can hold a finding about its library.

**Names.** Python: the dotted path at its public home (``torch.cuda.Stream``), methods as ``Type.method`` (``torch.Tensor.copy_``).
C++: as qualified in source (``cudaMemcpyAsync``, ``at::cuda::getCurrentCUDAStream``), methods as ``Type::method``
(``thrust::device_vector::resize``). ``*`` matches any run of characters; exact names win over patterns, longer patterns over shorter.

**Selectors** say where a value is in a call: the table `PLACES`. ``selector=word`` gives the value when the argument is left out: a word
of `DEFAULTS`, or a number. In a switch, ``!selector`` is the opposite of the flag found there (``blocking = "!1:non_blocking=false"``),
and of a list (``["1", "2=false"]``, for overloads) the first that is true or false counts, else the last.
"""

from __future__ import annotations

import re

from streamlint.models.keys import Key
from streamlint.support.records import field, record, replace

VERSION = 1
SPACES = {"cuda-device": "device", "cpu-device": "host"}
"""By the word of a constant that names a device: where memory is on that."""
PLACES = {
    "self": "the receiver of a method, or the object whose attribute is read",
    "2": "the argument at position 2, counted from 0 without the receiver",
    "2:key": "the argument at position 2, or the keyword `key`",
    ":key": "the keyword `key` only",
    "&0": "the object that the pointer at position 0 points to (C++ out-parameters: `cudaMalloc(&p, n)`)",
    "&0.field": "what was put into a field of the struct that the pointer at position 0 points to",
    "*": "all arguments",
    "result": "the value that the call returns",
}
DEFAULTS = {
    "true": "a flag that is set",
    "false": "a flag that is not set",
    "none": "no value",
    "null": "the null stream",
    "current": "the current stream of the library",
    "ptds": "the per-thread default stream",
    "own": "the stream that the receiver was made with",
    "handle": "the stream that the handle is bound to",
    "h2d": "a copy from the host to the device",
    "d2h": "a copy from the device to the host",
    "d2d": "a copy within the device",
    "h2h": "a copy within the host",
    "peer": "a copy between devices",
    "infer": "a copy whose direction the memory of both sides decides",
    "global": "the capture mode `global`",
    "thread_local": "the capture mode `thread_local`",
    "relaxed": "the capture mode `relaxed`",
}


class ModelError(ValueError):
    """A model row that does not fit the vocabulary; the message names the file, the row and the nearest right word."""

    def __init__(self, message: str, *at: str | int) -> None:
        super().__init__(message)
        self.at = at  # where in the file: a table, its number, a key


@record(frozen=True, slots=True)
class Selector:
    """Where a value stands in a call: see the table above."""

    kind: str  # "self", "argument", "pointee", "all", "result"
    position: int | None = None
    keyword: str | None = None
    default: str | None = None
    negated: bool = False  # in a switch: the opposite of the flag
    field: str = ""  # of the struct that a pointer leads to


@record(frozen=True, slots=True)
class Row:
    """One validated row. ``values`` holds its fields, selectors parsed."""

    names: tuple[str, ...]
    effect: str
    values: dict[str, object] = field(hash=False)
    library: str = ""
    source: str = ""

    def get(self, name: str, default: object = None) -> object:
        return self.values.get(name, default)

    @property
    def gives_pair(self) -> bool:
        """Whether the function gives a tuple, with its status before what it makes: those of CUDA's C API in cuda-python."""
        return self.library == "cuda_python" and "into" in self.values and self.names[0].rpartition(".")[2].startswith("cu")


_SELECTOR = re.compile(r"^(?:(self|result|\*)|(&)(\d+)(?:\.(\w+))?|(\d+)?(?::(\w+))?)(?:=([\w-]+))?$")


def parse_selector(text: str) -> Selector:
    """``"2:kw=null"`` as a Selector.

    Raises ModelError if the text is no selector.
    """
    found = _SELECTOR.match(text)
    if not found or not text or text.startswith("="):
        hint = f"; did you mean ':{text}'?" if text.isidentifier() else ""
        raise ModelError(f"'{text}' is no selector{hint}")
    word, pointee, pointer, member, position, keyword, default = found.groups()
    if default is not None and default not in DEFAULTS and not default.isdecimal():
        raise ModelError(f"'{text}' has an unknown default '{default}'; {nearest(default, list(DEFAULTS))}")
    if word:
        kind = {"self": "self", "result": "result", "*": "all"}[word]
        return Selector(kind, default=default)
    if pointee:
        return Selector("pointee", int(pointer), default=default, field=member or "")
    return Selector("argument", int(position) if position else None, keyword, default)


def nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    """A hint that names the nearest known word, or all of them where there are few."""
    import difflib  # start-up: for mistakes alone

    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(known)


def parse_field(key: Key, value: object) -> object:
    """A raw TOML value as its key wants it.

    Raises ModelError that says what the key accepts.
    """
    try:
        return _READERS.get(key.kind, _word)(key, value)
    except ModelError as error:
        if str(error).endswith("?") or key.kind in ("word", "words"):
            raise
        raise ModelError(f"{error}; it accepts {key.accepts}") from None


_TRUE, _FALSE = frozenset({"yes", "on", "true", "1"}), frozenset({"no", "off", "false", "0"})


def _bool(key: Key, value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower() if isinstance(value, str | int) else ""
    hint = "; did you mean true?" if text in _TRUE else "; did you mean false?" if text in _FALSE else ""
    raise ModelError(f"{value!r} must be true or false{hint}")


def _switch(key: Key, value: object) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, list):
        if not value:
            raise ModelError("an empty list names no flag")
        return tuple(_place(key, item) for item in value)
    text = value if isinstance(value, str) else ""
    if text.lower() in (_TRUE | _FALSE) - {"0", "1"}:
        return _bool(key, value)
    return replace(parse_selector(text[1:]), negated=True) if text.startswith("!") else _place(key, value)


def _place(key: Key, value: object) -> Selector:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ModelError(f"{value!r} is no selector")
    return parse_selector(str(value))


def _places(key: Key, value: object) -> tuple[Selector, ...]:
    return tuple(_place(key, item) for item in (value if isinstance(value, list) else [value]))


def _cases(key: Key, value: object) -> tuple[Selector, ...]:
    """Places, each with the value that counts there as its default."""
    found = []
    for item in value if isinstance(value, list) else [value]:
        place, sign, wanted = str(item).partition("=")
        if not sign or not wanted:
            raise ModelError(f"{item!r} names no value")
        found.append(replace(_place(key, place), default=wanted))
    return tuple(found)


def _text(key: Key, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ModelError(f"{value!r} is no text")
    return value


def _texts(key: Key, value: object) -> tuple[str, ...]:
    return tuple(_text(key, item) for item in (value if isinstance(value, list) else [value]))


def _words(key: Key, value: object) -> tuple[str, ...]:
    if value == []:
        raise ModelError("an empty list names no word")
    return tuple(_word(key, item) for item in (value if isinstance(value, list) else [value]))


def _number(key: Key, value: object) -> str:
    if not re.fullmatch(r"[0-9]{1,4}", str(value)):
        raise ModelError(f"{value!r} must be a number")
    return str(value)


def _word(key: Key, value: object) -> str:
    if isinstance(value, str) and value in key.words:
        return value
    raise ModelError(f"'{value}' is unknown; {nearest(str(value), key.words)}")


def _word_or_place(key: Key, value: object) -> object:
    if str(value) not in key.words and re.match(r"^[\d:&*]|^self|^result", str(value)):
        return _place(key, value)
    return _word(key, value)


_READERS = {
    "bool": _bool,
    "switch": _switch,
    "place": _place,
    "places": _places,
    "cases": _cases,
    "text": _text,
    "type": _text,
    "module": _text,
    "library": _text,
    "texts": _texts,
    "words": _words,
    "number": _number,
    "word or place": _word_or_place,
}
