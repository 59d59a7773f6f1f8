"""What a dotted name means in a file, as far as assignments, definitions and imports alone decide it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.declared_words import METADATA
from streamlint.support.records import record

DEEPEST = 12  # imports and aliases behind one another


@record(frozen=True, slots=True)
class ExternalName:
    """A dotted name of a library, or a builtin."""

    name: str


Definition = ClassInfo | Function | Unit | ExternalName
_TRANSPARENT = frozenset({"Optional", "Union", "Final", "ClassVar", "Required", "NotRequired", "ReadOnly"})
"""Types that stand for those in their brackets."""
_WORD = re.compile(r"[A-Za-z_][\w.]*")


class Scopes:
    """Looks names up in the files of a program."""

    def __init__(self) -> None:
        self._found: dict[tuple[Unit, str], tuple[Definition, ...]] = {}

    def find(self, unit: Unit, dotted: str, depth: int = 0) -> tuple[Definition, ...]:
        """What a dotted name may mean in a file; several where it is defined twice; empty where only running the code would tell."""
        key = (unit, dotted)
        if key not in self._found:
            self._found[key] = ()  # a name that is defined by itself
            self._found[key] = tuple(dict.fromkeys(self._find(unit, dotted, depth)))
        return self._found[key]

    def _find(self, unit: Unit, dotted: str, depth: int) -> list[Definition]:
        if depth > DEEPEST or not dotted:
            return []
        first, _, rest = dotted.partition(".")
        found = self._global(unit, first, depth)
        while rest and found:
            first, _, rest = rest.partition(".")
            found = [member for one in found for member in self.member(one, first, depth + 1)]
        return found

    def _global(self, unit: Unit, name: str, depth: int) -> list[Definition]:
        found: list[Definition] = []
        for function, register in unit.globals.get(name, ()):
            found += self._defined(function, register, depth)
        if found:
            return found
        if name not in unit.globals:
            for target in unit.starred():
                found += [one for one in self.find(target, name, depth + 1) if not isinstance(one, ExternalName)]
            if not found:
                found += [one for one in unit.classes if one.ir.name == name and one.ir.parent == 0]
            if not found:
                found.append(ExternalName(name))
        return found

    def _defined(self, function: Function, register: int, depth: int) -> list[Definition]:
        one = function.definitions[register]
        if one is None:
            return []
        if one[0] == op.IMPORT:
            name = function.text(one[4]) if one[4] != op.NONE else None
            return self.imported(function.unit, function.text(one[3]), name, depth)
        if one[0] == op.CALL and (bound := self._bound_of(function, one)):
            return list(self.find(function.unit, bound, depth + 1))
        if (wrapped := self._wrapped(function, register)) is not None:
            return [wrapped]
        if one[0] == op.PHI:
            return [each for before in one[3:] for each in self._defined(function, before, depth + 1)] if depth < DEEPEST else []
        if one[0] in (op.NAME, op.ATTR) and (dotted := function.dotted(register)):
            return list(self.find(function.unit, dotted, depth + 1))
        return []

    def _bound_of(self, function: Function, one: Instruction) -> str:
        """The type that a type variable stands for at most, as it is written: of ``TypeVar("T", bound=Base)`` that is ``Base``."""
        kinds = function.unit.ir.constants[one[4]] if one[4] != op.NONE else ()
        if "bound" not in kinds or ExternalName("typing.TypeVar") not in self.find(function.unit, function.dotted(one[3])):
            return ""
        register = one[5 + kinds.index("bound")]
        written = function.constant(register)
        return written if isinstance(written, str) else function.dotted(register)

    def _wrapped(self, function: Function, register: int) -> Definition | None:
        """The function or class behind its decorators."""
        one = function.definitions[register]
        while one is not None and one[0] == op.CALL and len(one) == 6:
            one = function.definitions[one[5]]
        if one is not None and one[0] == op.FUNCTION:
            return function.unit.function(one[3])
        return function.unit.classes[one[3]] if one is not None and one[0] == op.CLASS else None

    def imported(self, unit: Unit, module: str, name: str | None, depth: int = 0) -> list[Definition]:
        """What ``import module`` or ``from module import name`` means in a file."""
        target = unit.program.imported(module, unit)
        if name is None:
            return [target if target is not None else ExternalName(module)]
        if target is None:
            inner = unit.program.imported(f"{module}.{name}" if not module.endswith(".") else module + name, unit)
            return [inner] if inner is not None else [ExternalName(f"{module}.{name}")]
        return self.member(target, name, depth + 1)

    def member(self, owner: Definition, name: str, depth: int = 0) -> list[Definition]:
        """A member of a module or class, or of a library's name."""
        if isinstance(owner, ExternalName):
            return [ExternalName(f"{owner.name}.{name}")]
        if isinstance(owner, Unit):
            if name in owner.globals or any(taken == "*" for _, taken in owner.imports):
                found = [one for one in self.find(owner, name, depth + 1) if one != ExternalName(name)]
                if found:
                    return found
            path = owner.program.modules.submodule(owner.path, name)
            return [owner.program.units[path]] if path is not None else []
        if isinstance(owner, ClassInfo):
            inner = [one for one in owner.unit.classes if one.ir.parent == owner.ir.body and one.ir.name == name]
            return [*owner.methods.get(name, ()), *inner]
        return []

    def annotated(self, unit: Unit, annotation: str) -> Iterator[tuple[str, list[str], ClassInfo | ExternalName]]:
        """The classes that an annotation names, each with its last word and what stands in its brackets: of ``Optional[X]``, ``X | None``
        and ``"X"`` those of ``X``; of ``type[X]`` those of ``X`` with the word ``type``; of ``list[X]`` the list."""
        text = annotation.replace(" ", "")
        text = text if METADATA in text else text.replace('"', "").replace("'", "")
        for part in _alternatives(text):
            word, inner = _head(part)
            if word.rpartition(".")[2] in ("type", "Type") and inner:
                for each in _alternatives(inner[0]):
                    yield from (("type", [], one) for one in self._classes_named(unit, _head(each)[0]))
            else:
                yield from ((word.rpartition(".")[2], inner, one) for one in self._classes_named(unit, word))

    def with_metadata(self, unit: Unit, annotation: str, depth: int = 0) -> Iterator[tuple[Unit, str, tuple[str, ...]]]:
        """The types that an annotation names, each with the file in which it is written, and with the metadata that ``Annotated`` gives
        it. Aliases are followed, also those that are imported."""
        for part in _split(annotation.strip(), "|"):
            word, inner = _head(part.strip("\"'") if part[:1] == part[-1:] and part[:1] in "\"'" else part)
            alias = self.alias(unit, word) if word and not inner and depth < DEEPEST else None
            if inner and word.rpartition(".")[2] in _TRANSPARENT:
                for each in inner:
                    yield from self.with_metadata(unit, each, depth + 1)
            elif inner and self._gives_metadata(unit, word):
                for home, base, metadata in self.with_metadata(unit, inner[0], depth + 1):
                    yield home, base, (*metadata, *inner[1:])
            elif alias is not None:
                yield from self.with_metadata(*alias, depth + 1)
            else:
                yield unit, part, ()

    def _gives_metadata(self, unit: Unit, word: str) -> bool:
        """Whether a name means ``Annotated``."""
        if word.rpartition(".")[2] != METADATA:
            return False
        found = self.find(unit, word) if not unit.is_cpp else ()
        return all(isinstance(one, ExternalName) for one in found)

    def alias(self, unit: Unit, name: str, depth: int = 0) -> tuple[Unit, str] | None:
        """The type that a name stands for, as text, and the file in which it is written; None if it stands for none."""
        if depth > DEEPEST or unit.is_cpp:
            return None
        head, _, last = name.rpartition(".")
        if head:
            meant = self.find(unit, head)
            homes = (unit.program.imported(one.name, unit) if isinstance(one, ExternalName) else one for one in meant)
            return self._alias_in(homes, last, depth)
        for function, register in unit.globals.get(name, ()):
            one = function.definitions[register]
            if one is not None and one[0] == op.IMPORT and one[4] != op.NONE:
                target = unit.program.imported(function.text(one[3]), unit)
                return self.alias(target, function.text(one[4]), depth + 1) if target is not None else None
            if one is not None and one[0] in (op.ITEM, op.BINARY, op.NAME):
                text = self.spelled(function, register)
                return (unit, text) if text and text != name else None
        return self._alias_in(unit.starred(), name, depth) if name not in unit.globals else None

    def _alias_in(self, homes: Iterable[Definition | None], name: str, depth: int) -> tuple[Unit, str] | None:
        """The type that a name stands for in the first of some files in which it stands for one."""
        found = (self.alias(one, name, depth + 1) for one in homes if isinstance(one, Unit))
        return next((one for one in found if one is not None), None)

    def spelled(self, function: Function, register: int) -> str:
        """A type that code computes, as an annotation spells it; "" where it is none."""
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            return ""
        if one[0] in (op.NAME, op.ATTR):
            return function.dotted(register)
        if one[0] == op.CONST:
            value = function.constant(register)
            return repr(value) if isinstance(value, str) else "None" if value is None else ""
        if one[0] == op.BUILD:
            return ",".join(self.spelled(function, each) for each in one[4:])
        if one[0] == op.ITEM:
            return f"{self.spelled(function, one[3])}[{self.spelled(function, one[4])}]"
        if one[0] == op.BINARY:
            return f"{self.spelled(function, one[4])}|{self.spelled(function, one[5])}"
        return ""

    def exactly(self, unit: Unit, annotation: str) -> ClassInfo | None:
        """The class of the program that an annotation names and nothing beside."""
        text = annotation.strip("\"' ")
        found = self.find(unit, text) if _WORD.fullmatch(text) else ()
        return one if len(found) == 1 and isinstance(one := found[0], ClassInfo) else None

    def _classes_named(self, unit: Unit, word: str) -> list[ClassInfo | ExternalName]:
        if word in ("", "None", "Any", "typing.Any", "object"):
            return []
        return [one for one in self.find(unit, word) if isinstance(one, (ClassInfo, ExternalName))]


def _head(text: str) -> tuple[str, list[str]]:
    """The dotted name that a type begins with, and what stands in the brackets behind it."""
    found = _WORD.match(text)
    word = found[0] if found is not None else ""
    rest = text[len(word) :]
    return word, _split(rest[1:-1], ",") if rest.startswith("[") and rest.endswith("]") else []


def _alternatives(text: str) -> list[str]:
    """The parts of ``A | B``, ``Optional[A]`` and ``Union[A, B]``."""
    parts = _split(text, "|")
    if len(parts) > 1:
        return [one for part in parts for one in _alternatives(part)]
    head, bracket, rest = text.partition("[")
    if bracket and head.rpartition(".")[2] in ("Optional", "Union", "Annotated", "Final", "ClassVar") and rest.endswith("]"):
        inner = _split(rest[:-1], ",")
        inner = inner[:1] if head.rpartition(".")[2] == "Annotated" else inner
        return [one for part in inner for one in _alternatives(part)]
    return [text]


def _split(text: str, separator: str) -> list[str]:
    """Split where no bracket is open."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == separator and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]
