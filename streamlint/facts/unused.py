"""Functions of Python that nothing in the program refers to, by the names, attributes, imports and texts of its instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.aliases import SELF, path_of
from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.hierarchy import Hierarchy
from streamlint.facts.program import Program, Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

_LISTING = ("globals", "locals", "vars", "__dict__", "eval", "exec")
"""Names of a file that may take a function of its own by a name which is computed."""
_OWN_DECORATORS = frozenset({"staticmethod", "classmethod"})
_OF_LANGUAGE = frozenset({"object", "ABC", "abc.ABC", "Generic", "typing.Generic"})
_COMPUTED = (op.FORMAT, op.BINARY)
_WORDS = re.compile(r"\w+")


class Unused:
    """Which functions nobody calls: those that nothing names, and that nobody out of view has a right to call."""

    def __init__(self, program: Program, hierarchy: Hierarchy) -> None:
        self.program = program
        self.hierarchy = hierarchy
        self._known: dict[Function, bool] = {}

    def is_unused(self, function: Function) -> bool:
        """Whether nothing runs a function, or the one that it stands in: a private one, one of a script, a local one."""
        if function not in self._known:
            around = function.parent
            is_inside = around is not None and around.code.kind == "function" and self.is_unused(around)
            self._known[function] = is_inside or (self._is_own(function) and not self.is_named(function))
        return self._known[function]

    def is_named(self, function: Function) -> bool:
        """Whether anything in the program but a function itself may mean it."""
        if function.code.kind != "function" or function.is_cpp or not _OWN_DECORATORS.issuperset(function.decorators):
            return True
        parent = function.parent
        if function.owner is None and (parent is None or parent.code.kind != "module"):
            return self._is_local_named(function)
        name, inside = function.code.name, set(function.below)
        units = self.program.mentioning(name)
        if any(unit.is_cpp for unit in units) or self._is_computed(function):
            return True
        return any(user not in inside and not self._is_other(function, user, one) for unit in units for user, one in _uses(unit, name))

    def _is_local_named(self, function: Function) -> bool:
        """Whether anybody reads the variable of a local function."""
        made, parent = function.definition, function.parent
        if made is None or parent is None:
            return True
        uses = parent.uses[made[2]]
        cells = {use[2] for use in uses if use[0] == op.STORE}
        loads = (one for each in parent.below if each not in function.below for one in each.by_opcode[op.LOAD])
        return any(use[0] not in (op.STORE, op.BIND, op.UNBIND) for use in uses) or any(one[3] in cells for one in loads)

    # --- who has a right to call

    def _is_own(self, function: Function) -> bool:
        """Whether only the program's own code, or the function around it, calls a function."""
        parent, name = function.parent, function.code.name
        if parent is None or function.code.kind != "function" or any(word in function.unit.ir.constants for word in _LISTING):
            return False
        is_private = name.startswith("_") and not name.endswith("__")
        if function.owner is not None:
            return is_private and self._has_own_bases(function.owner)
        if parent.code.kind != "module":
            return True
        takes = any(one.kind in ("plain", "keyword") and not one.default for one in function.code.parameters)
        return is_private or (takes and self._is_script(function.unit))

    def _has_own_bases(self, definition: ClassInfo) -> bool:
        """Whether all classes above a class are of the program: one of a library may call what it does not have."""
        for one in self.hierarchy.order(definition):
            known = [base for base in self.hierarchy.bases(one) if isinstance(base, ClassInfo) or base.name in _OF_LANGUAGE]
            if len(known) < len(one.ir.bases):
                return False
        return True

    def _is_script(self, unit: Unit) -> bool:
        """Whether a file runs functions of its own when it is started, and no other file imports it."""
        body = unit.body
        called = {body.text(made[3]) for one in body.by_opcode[op.CALL] if (made := body.definitions[one[3]]) and made[0] == op.NAME}
        stem = unit.path.rpartition("/")[2].removesuffix(".py")
        others = [other for other in self.program.mentioning(stem) if other is not unit and not other.is_cpp]
        is_told = any(one.code.name in called for one in unit.functions if one.code.parent == 0 and one.code.kind == "function")
        return is_told and "__name__" in unit.name_uses and not any(_takes(other, stem) for other in others)

    # --- what may mean it

    def _is_other(self, function: Function, user: Function, one: Instruction) -> bool:
        """Whether an attribute is one of an object that is none of the function's class: of ``self`` in a class apart from it."""
        method = user.method
        if function.owner is None or one[0] not in (op.ATTR, op.INVOKE) or method is None or method.owner is None:
            return False
        below = self.hierarchy.cone(function.owner)
        if path_of(user, one[3]) != SELF or below is None:
            return False
        return not any(self.hierarchy.derives(each, method.owner) for each in (function.owner, *below))

    def _is_computed(self, function: Function) -> bool:
        """Whether a name that begins or ends like a function's is put together for an attribute. One character says so in its own files."""
        name, owner = function.code.name, function.owner
        related = {one.unit for one in (*self.hierarchy.order(owner), *(self.hierarchy.cone(owner) or ()))} if owner is not None else set()
        own = {function.unit, *related}
        return any((len(piece) > 1 or unit in own) and (name.startswith(piece) or name.endswith(piece)) for unit, piece in self._pieces)

    @cached_property
    def _pieces(self) -> list[tuple[Unit, str]]:
        """The texts from which files put names of attributes together."""
        found: list[tuple[Unit, str]] = []
        for unit in self.program.mentioning("getattr"):
            for function, call, name in unit.computed_uses if not unit.is_cpp else ():
                made = function.definitions[call[6]] if name is None and call[6] >= 0 else None
                texts = map(function.constant, op.reads(made) if made is not None and made[0] in _COMPUTED else ())
                found += ((unit, text) for text in texts if isinstance(text, str) and text)
        return found


def _uses(unit: Unit, name: str) -> Iterator[tuple[Function, Instruction]]:
    """The instructions of a file that read a name, an attribute or a text of that name, or import it."""
    yield from unit.name_uses.get(name, ())
    yield from unit.attribute_uses.get(name, ())
    yield from unit.taken.get(name, ())
    yield from _texts(unit, name)


def _texts(unit: Unit, name: str) -> Iterator[tuple[Function, Instruction]]:
    """The instructions that read a text which has a name as a word, and no blank."""
    for function in unit.functions:
        for one in function.by_opcode[op.CONST]:
            text = function.constant(one[2])
            if isinstance(text, str) and name in text and " " not in text and name in _WORDS.findall(text):
                yield function, one


def _takes(unit: Unit, stem: str) -> bool:
    """Whether a file imports a module of a name, or has it in a text."""
    return any(stem in (taken, *module.split(".")) for module, taken in unit.imports) or any(True for _ in _texts(unit, stem))
