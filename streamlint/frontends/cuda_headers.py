"""Macros that a file gets from known headers: those that work on the GPU, that call or ask what they are given, or that name the API."""

from __future__ import annotations

import posixpath
import re

from streamlint.frontends.cuda_checks import has_effects
from streamlint.frontends.cuda_preprocess import Macro, Preprocessed, preprocess
from streamlint.support.records import field, record

Definitions = tuple[tuple[str, Macro | None], ...]

_DEFINE = re.compile(r"^[ \t]*#[ \t]*(?:define|include)\b", re.M)
_API = re.compile(r"\b(?:cuda|cu|nccl|cublas|cudnn|cufft|cusparse|curand|cusolver)[A-Z_]\w*|\bat::cuda::|\bc10::cuda::")
_BEGINS = re.compile(rf"(?:const\s+)?(?:::)?(?:{_API.pattern})")
_ASKED = re.compile(r"(?<![#\w.>])([A-Za-z_]\w*)\s*\)?\s*(?:\.|->)\s*[A-Za-z_]\w*\s*\(")
_NUMBER = re.compile(r"\(*\s*(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*\s*\)*")
_CALLED = re.compile(r"(?<![#\w.>])([A-Za-z]\w*)\s*\(")
_MOST = 4000  # macros that one file is given


@record(slots=True)
class Headers:
    """The C++ texts of a run by path. Each is read when an include first asks for it."""

    texts: dict[str, str]
    _by_name: dict[str, list[str]] = field(default_factory=dict)
    _read: dict[str, Preprocessed] = field(default_factory=dict)
    _brought: dict[str, Definitions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in self.texts:
            self._by_name.setdefault(_name(path), []).append(path)

    def read(self, path: str, text: str) -> Preprocessed:
        """The text without comments and directives; read once, if it is one of the run's."""
        if self.texts.get(path) is not text:
            return preprocess(text)
        if path not in self._read:
            self._read[path] = preprocess(text)
        return self._read[path]

    def definitions(self, path: str, source: Preprocessed) -> list[tuple[int, str, Macro | None]]:
        """What a file defines, and before it what its includes bring, each at its offset."""
        brought = [
            (start, name, macro)
            for include, (start, _) in zip(source.includes, source.included_at, strict=True)
            for name, macro in self.brought_by(include, path, frozenset({path}))
        ]
        return sorted([*brought[:_MOST], *source.definitions], key=_offset) if brought else source.definitions

    def brought_by(self, include: str, path: str, above: frozenset[str]) -> Definitions:
        """The macros of a header and of those that it includes, in order."""
        target = self.find(include, path)
        if target is None or target in above:
            return ()
        if target not in self._brought:
            text = self.texts[target]
            self._brought[target] = self._exported(target, text, above | {target}) if _DEFINE.search(text) else ()
        return self._brought[target]

    def find(self, include: str, path: str) -> str | None:
        """The path of the text that an include names: the longest common folder wins."""
        tail = include.replace("\\", "/").lstrip("./")
        held = [
            other for other in self._by_name.get(_name(tail), ()) if f"/{other}".replace("\\", "/").endswith(f"/{tail}") and other != path
        ]
        return max(held, key=lambda other: len(posixpath.commonprefix((other, path))), default=None)

    def _exported(self, path: str, text: str, above: frozenset[str]) -> Definitions:
        source = self.read(path, text)
        found: dict[str, Macro | None] = {}
        for include in source.includes:
            found.update(self.brought_by(include, path, above))
        known = {name: macro for name, macro in found.items() if macro is not None}
        known.update((name, macro) for _, name, macro in source.definitions if macro is not None)
        for _, name, macro in source.definitions:
            if macro is None:
                found.pop(name, None)
            elif _matters(macro, known):
                found[name] = macro
        return tuple(found.items())


def _matters(macro: Macro, known: dict[str, Macro]) -> bool:
    """Whether files that include a macro cannot be understood without it."""
    if macro.params is None:
        return bool(macro.body) and (has_effects(macro.body, known) or bool(_NUMBER.fullmatch(macro.body) or _API.search(macro.body)))
    if not set(macro.params).isdisjoint(_CALLED.findall(macro.body)) and macro.params != ("__VA_ARGS__",):
        return True
    return has_effects(macro.body, known) or bool(_BEGINS.match(macro.body)) or _asks(macro, known)


def _asks(macro: Macro, known: dict[str, Macro], depth: int = 3) -> bool:
    """Whether a macro asks a method of what it is given (``TORCH_CHECK(x.is_cuda())``), itself or by other macros."""
    if not set(macro.params or ()).isdisjoint(_ASKED.findall(macro.body)):
        return True
    called = (known[name] for name in _CALLED.findall(macro.body) if name in known)
    return depth > 0 and any(each is not macro and each.params is not None and _asks(each, known, depth - 1) for each in called)


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _offset(definition: tuple[int, str, Macro | None]) -> int:
    return definition[0]
