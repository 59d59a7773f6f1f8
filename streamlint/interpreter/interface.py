"""What Python may see of the C++ of a program, by names alone: most of Python calls nothing of it, and does not rest on it then.

An interface is made of all exports, and can be kept: with it the C++ of a run need not be there until a name is called that it binds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlint.interpreter.notes import Kept, kept
from streamlint.record import field, names_of, record

if TYPE_CHECKING:
    from streamlint.interpreter.index import File

# Names of values that stand for C++: `extension:inline:path`, `extension:source:a/cpp,b/cu` (no dots), `extension:symbols:`.
EXTENSION = "extension:"
_FROM_PYTHON = ("torch.ops.", "cpp_extension", "load_inline", "CDLL", "LoadLibrary", "ctypeslib", "dlopen", "PyDLL", "cffi")


@record(slots=True)
class Interface:
    """The names that C++ makes known. ``unnamed``: those of modules whose name the build decides, None without such a module."""

    any: bool = False
    modules: list[str] = field(default_factory=list)
    unnamed: list[str] | None = None
    symbols: bool = False
    names: list[str] = field(default_factory=list)  # of all that can be called, by their last parts
    _modules: frozenset[str] = field(init=False)
    _unnamed: frozenset[str] = field(init=False)
    _names: frozenset[str] = field(init=False)
    _seen_from: dict[str, Kept[bool]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._modules, self._names = frozenset(self.modules), frozenset(self.names)
        self._unnamed = frozenset(self.unnamed or ())

    def record(self) -> dict[str, Any]:
        """The interface as plain data."""
        return {name: getattr(self, name) for name in names_of(Interface) if not name.startswith("_")}

    @property
    def may_be_imported(self) -> bool:
        """Whether Python may come to any of this without a library that builds or opens it: as a module, or by a symbol."""
        return bool(self.modules) or self.unnamed is not None or self.symbols

    def may_find(self, name: str, asking: File) -> bool:
        """Whether a dotted name of a Python file may stand for C++; `Exports.find` knows."""
        if not self.any or asking.is_cuda:
            return False
        parts = [part for part in name.split(".") if part]
        if name.startswith(EXTENSION) or (len(parts) > 3 and parts[:2] == ["torch", "ops"]):
            return True
        last, heads = parts[-1] if parts else "", parts[:-1]
        if any(head in self._modules for head in heads):
            return True
        if not heads or asking.models.is_known(parts[0]):
            return False
        return (heads[-1] == "lib" and self.symbols) or last in self._unnamed

    def may_call(self, name: str, asking: File) -> bool:
        """Whether a Python file may call C++ by a name, whatever stands before it."""
        return name in self._names and self.seen_from(asking)

    def seen_from(self, file: File) -> bool:
        """Whether a Python file may call anything of this."""
        if not self.any or file.is_cuda:
            return False
        return kept(self._seen_from, file.path, self._is_seen, file)

    def _is_seen(self, file: File) -> bool:
        text = file.module.text
        if any(word in text for word in _FROM_PYTHON):
            return True
        heads = {part for dotted in file.module.imports.values() for part in dotted.split(".") if part}
        if not heads.isdisjoint(self._modules):
            return True
        if self.unnamed is None and not self.symbols:
            return False
        return any(
            not file.models.is_known(dotted.lstrip(".").partition(".")[0])
            and file.program.python_module(dotted, file) is None
            and file.program.python_module(dotted.rpartition(".")[0] or ".", file) is None
            for dotted in file.module.imports.values()
        )
