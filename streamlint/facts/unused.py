"""Functions of Python that nothing can call: nothing in them ever runs.

Two kinds are sure enough. A function or method is private by Python's convention, and no code of the program names it: not its own file, no
class that shares objects with its own, no text, no name that is put together of pieces. And a script, which reads the command line and runs
its functions by itself, has a function that it does not name, while no other file imports the script. Nothing is believed where somebody
out of view may have a right to call: a library's class above, a decorator, a function without arguments that a package may start with, or
a file of which the run holds no neighbours.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePosixPath

from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.hierarchy import Hierarchy
from streamlint.facts.program import Program, Unit
from streamlint.facts.scopes import Scopes
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(_\w+)", re.MULTILINE)
_DEFINES = re.compile(r"(?:^|[ \t])def[ \t]+$")
_COMMAND_LINE = re.compile(r"\b(?:argparse|optparse|getopt|sys\.argv)\b")
_GUARD = re.compile(r"\bif[ \t]+__name__[ \t]*==")
_ITSELF = re.compile(
    r"(?<![.\w])(?:__name__|__all__|globals|locals|vars|eval|exec|__import__)\b|\b(?:__dict__|sys\.modules|import_module|Fire)\b"
)
"""Words of files that may take a function of theirs by a name which does not stand in them, or offer all of them."""
_COMPUTING = ("getattr", "globals", "vars", "__dict__", "methodcaller", "attrgetter", "getmembers")
_PIECES = re.compile(r"(\+[ \t]*)?(?<!\w)[fF]?([\"'])([\w{}%()\[\].:]*)\2([ \t]*\+)?")
_BEGUN = re.compile(r"\b(starts|ends)with\([ \t]*[\"'](\w+)[\"']")
_HOLE = re.compile(r"\{[^{}]*\}|%\(\w+\)[sd]|%[sd]")
_OF_LANGUAGE = frozenset({"object", "ABC", "abc.ABC", "Generic", "typing.Generic"})
"""Bases that call no private method of a class."""
_OWN_DECORATORS = frozenset({"staticmethod", "classmethod", "property"})


def leave_out(program: Program) -> None:
    """Let the functions of a program do nothing that nothing can call."""
    if program.is_searched:
        return
    program.is_searched = True
    found: dict[Unit, set[int]] = defaultdict(set)
    for function in list(_Unused(program).find()):
        found[function.unit].update(one.code.number for one in function.below)
    for unit, numbers in found.items():
        unit.leave_out(frozenset(numbers))


class _Unused:
    """The search."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.hierarchy = Hierarchy(program, Scopes())
        self._importers: dict[Unit, list[Unit]] = {}

    def find(self) -> Iterator[Function]:
        """The functions that nothing can call."""
        for unit in self.program.units.values():
            if unit.source.language == "python" and unit.path.endswith(".py"):
                names = dict.fromkeys(_DEFINED.findall(unit.source.text))
                silent = {name for name in names if not name.endswith("_") and not any(True for _ in _named(unit, name))}
                yield from (one for one in unit.functions if one.code.name in silent and self._is_unused(one)) if silent else ()
                yield from self._of_script(unit)

    def _is_unused(self, function: Function) -> bool:
        """Whether nothing outside of its file names a private function or method either."""
        if function.code.kind != "function" or not _OWN_DECORATORS.issuperset(function.decorators):
            return False
        if any(each.fullmatch(function.code.name) for each in self._computed):
            return False
        owner, parent = function.owner, function.parent
        if owner is not None:
            return self._is_own(owner) and not any(self._calls(unit, function, owner) for unit in self._others(function))
        return parent is not None and parent.code.kind == "module" and not function.decorations and self._is_unused_global(function)

    def _others(self, function: Function) -> list[Unit]:
        return [unit for unit in self.program.mentioning(function.code.name) if unit is not function.unit]

    def _is_unused_global(self, function: Function) -> bool:
        """Whether no file takes a function from its module, where some take others."""
        unit, name = function.unit, function.code.name
        importers = self._importing(unit)
        others = [other for other in self._others(function) if any(True for _ in _named(other, name))]
        return bool(importers) and not any(
            other in importers or other.is_cpp or name in other.attribute_uses or _is_quoted(other, name) for other in others
        )

    # --- methods

    def _is_own(self, definition: ClassInfo) -> bool:
        """Whether all classes above a class are at hand, and the program's other files know it or one of these."""
        for one in self.hierarchy.order(definition):
            bases = self.hierarchy.bases(one)
            known = [base for base in bases if isinstance(base, ClassInfo) or base.name in _OF_LANGUAGE]
            metaclass = [text for word, text in one.ir.keywords if word == "metaclass"]
            if len(known) < len(one.ir.bases) or any(text.rpartition(".")[2] != "ABCMeta" for text in metaclass):
                return False
        home = definition.unit
        return any(one.unit is not home for one in self.hierarchy.order(definition)) or bool(self._importing(home))

    def _calls(self, unit: Unit, function: Function, owner: ClassInfo) -> bool:
        """Whether another file may name the method of a class: otherwise than as one of an object whose class has nothing to do with it."""
        name = function.code.name
        named = sum(1 for _ in _named(unit, name))
        if unit.is_cpp or not named:
            return bool(named)
        uses = unit.attribute_uses.get(name, ())
        return named != len(uses) or any(self._may_share(owner, user, use) for user, use in uses)

    def _may_share(self, owner: ClassInfo, user: Function, use: Instruction) -> bool:
        """Whether the object of which an attribute is read may be one of a class: it is not the receiver of a class apart from it."""
        method, receiver = user.method, user.definitions[use[3]]
        other = method.owner if method is not None and method.has_receiver else None
        if method is None or other is None or receiver is None:
            return True
        if receiver[0] == op.LOAD:
            is_receiver = user.unit.ir.constants[receiver[3]][1] == method.code.number and user.is_parameter(use[3])
        else:
            is_receiver = user is method and user.is_parameter(use[3])
        below = self.hierarchy.cone(owner)
        return not is_receiver or below is None or any(self.hierarchy.derives(one, other) for one in below)

    # --- scripts

    def _of_script(self, unit: Unit) -> Iterator[Function]:
        """The functions of a script that it does not name itself."""
        text, stem = unit.source.text, PurePosixPath(unit.path).stem
        if not _COMMAND_LINE.search(text) or _ITSELF.search(_GUARD.sub("", text)) or stem.startswith("test_") or stem.endswith("_test"):
            return
        own = {one.code.name: one for one in unit.functions if one.code.kind == "function" and one.code.parent == 0}
        called = (unit.body.definitions[call[3]] for call in unit.body.by_opcode[op.CALL])
        if not any(one is not None and one[0] == op.NAME and unit.body.text(one[3]) in own for one in called) or self._is_taken(unit):
            return
        for name, function in own.items():
            needs = any(one.kind in ("plain", "keyword") and not one.default for one in function.code.parameters)
            if needs and name not in unit.name_uses and not function.decorations and len(unit.globals.get(name, ())) == 1:
                yield function

    def _is_taken(self, unit: Unit) -> bool:
        """Whether another file imports a file, or names its module in a text."""
        stem = PurePosixPath(unit.path).stem
        path = re.compile(rf"[\"'](?:[\w/]+[./])+{stem}[\"':.]|import_module\([^)\n]*{stem}")
        return bool(self._importing(unit)) or any(
            path.search(other.source.text) for other in self.program.mentioning(stem) if other is not unit
        )

    # --- the program

    def _importing(self, unit: Unit) -> list[Unit]:
        """The other files that import a file."""
        if unit not in self._importers:
            path = PurePosixPath(unit.path)
            word = path.parent.name if path.stem == "__init__" else path.stem
            near = (other for other in self.program.mentioning(word) if other is not unit and not other.is_cpp)
            self._importers[unit] = [other for other in near if unit in self.program.written_imports(other)]
        return self._importers[unit]

    @cached_property
    def _computed(self) -> list[re.Pattern[str]]:
        """The names that files put together which take attributes by names of their own making, as patterns."""
        texts = {unit.source.text for word in _COMPUTING for unit in self.program.mentioning(word) if not unit.is_cpp}
        return [re.compile(pattern) for pattern in sorted({pattern for text in texts for pattern in _patterns(text)})]


def _patterns(text: str) -> Iterator[str]:
    for before, _, literal, behind in _PIECES.findall(text):
        parts = [*([""] if before else ()), *_HOLE.split(literal), *([""] if behind else ())]
        if len(parts) > 1 and any(parts):
            yield r"\w*".join(map(re.escape, parts))
    for end, word in _BEGUN.findall(text):
        yield word + r"\w*" if end == "starts" else r"\w*" + word


def _named(unit: Unit, name: str) -> Iterator[re.Match[str]]:
    """The places at which a text has a name, besides definitions and comments."""
    text = unit.source.text
    for found in re.finditer(rf"(?<!\w){name}(?!\w)", text):
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        is_comment = "#" in before and '"' not in before and "'" not in before
        if not is_comment and not _DEFINES.search(before):
            yield found


def _is_quoted(unit: Unit, name: str) -> bool:
    return re.search(rf"[\"'][^\"'\n]*\b{name}\b", unit.source.text) is not None
