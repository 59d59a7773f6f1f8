"""Functions of Python that nothing in the program means, by the names, attributes, imports and texts of its instructions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.files.hierarchy import Hierarchy
from streamlint.facts.files.program import Program, Unit
from streamlint.facts.graph.aliases import SELF, path_of
from streamlint.facts.graph.applications import Applications
from streamlint.facts.graph.importers import importers, lists_names, texts_of
from streamlint.facts.graph.left_out import LeftOut, takes_something
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized

_OWN_DECORATORS = frozenset({"staticmethod", "classmethod"})
_COMMAND_LINE = frozenset({"argparse", "optparse", "getopt"})


class Unused:
    """Which functions nobody calls: those that nothing names, and that nobody out of view has a right to call."""

    def __init__(self, program: Program, hierarchy: Hierarchy) -> None:
        self.program = program
        self.hierarchy = hierarchy
        self.applications = Applications(program)
        self._left_out = LeftOut(self.applications, hierarchy)
        self._known: dict[Function, bool] = {}

    def is_unused(self, function: Function) -> bool:
        """Whether nothing runs a function, or the one that it stands in: a private one, one of a script, a local one."""
        if function not in self._known:
            around = function.parent
            is_inside = around is not None and around.code.kind == "function" and self.is_unused(around)
            is_left_out = (self._is_own(function) and not self.is_named(function)) or self._left_out.holds(function)
            self._known[function] = is_inside or is_left_out
        return self._known[function]

    def is_named(self, function: Function) -> bool:
        """Whether anything in the program but a function itself may mean it."""
        parent, name = function.parent, function.code.name
        if parent is None or not _OWN_DECORATORS.issuperset(function.decorators):
            return True
        if _is_local(function, parent):
            return _is_read(function, parent)
        if self._is_of_script(function):
            return name in function.unit.name_uses or any(True for _ in texts_of(function.unit, name))
        inside, units = set(function.below), self.program.mentioning(name)
        uses = ((user, one) for unit in units for user, one in _uses(unit, name))
        return (
            any(unit.is_cpp for unit in units)
            or any(name.startswith(piece) or name.endswith(piece) for piece in self._pieces)
            or any(user not in inside and not self._is_other(function, user, one) for user, one in uses)
        )

    # --- who has a right to call

    def _is_own(self, function: Function) -> bool:
        """Whether only code of the program calls a function: a local one, one of a script, or a private one of what others import."""
        parent, name, unit = function.parent, function.code.name, function.unit
        if parent is None or function.code.kind != "function" or function.is_cpp or lists_names(unit):
            return False
        if _is_local(function, parent) or self._is_of_script(function):
            return True
        if name.endswith("__") or not (name.startswith("_") or (function.owner is not None and self._is_of_application(unit))):
            return False
        return self._has_own_bases(function.owner) if function.owner is not None else any(True for _ in importers(unit))

    def _has_own_bases(self, definition: ClassInfo) -> bool:
        """Whether all classes above a class are of the program: one of a library may call what it does not have."""
        classes = [(one, self.hierarchy.bases(one)) for one in self.hierarchy.order(definition)]
        return all(
            len(bases) == len(one.ir.bases)
            and all(isinstance(base, ClassInfo) or base.name in one.unit.models.marked("plain-base") for base in bases)
            for one, bases in classes
        )

    def _is_of_script(self, function: Function) -> bool:
        """Whether a function that needs arguments stands in a script."""
        return function.parent is function.unit.body and takes_something(function) and self._is_script(function.unit)

    @memoized
    def _is_script(self, unit: Unit) -> bool:
        """Whether a file reads the command line, calls functions of its own, and is imported and named by no other."""
        body = unit.body
        if not ("argv" in unit.attribute_uses or any(module in _COMMAND_LINE for module, _ in unit.imports)):
            return False
        called = {body.dotted(one[3]) for one in body.by_opcode[op.CALL]}
        stem = unit.path.rpartition("/")[2].removesuffix(".py")
        named = (True for other in self.program.mentioning(stem) if other is not unit and not other.is_cpp for _ in texts_of(other, stem))
        return not called.isdisjoint(unit.defined) and not any(named) and not any(True for _ in importers(unit))

    @memoized
    def _is_of_application(self, unit: Unit) -> bool:
        """Whether only the program in view calls methods of what a file defines, and each of them by its name."""
        return (self._is_script(unit) or self._left_out.is_part(unit)) and not self._calls_by_name

    @cached_property
    def _calls_by_name(self) -> bool:
        """Whether the program calls methods by names that it computes."""
        units = (unit for unit in self.program.mentioning("getattr") if not unit.is_cpp)
        made = ((function, call[2]) for unit in units for function, call, name in unit.computed_uses if name is None)
        return self._left_out.is_open or any(
            use[0] == op.CALL and use[3] == register for function, register in made for use in function.uses[register]
        )

    # --- what may mean it

    def _is_other(self, function: Function, user: Function, one: Instruction) -> bool:
        """Whether an attribute is one of an object that is none of the function's class: of ``self`` in a class apart from it."""
        owner, method = function.owner, user.method
        if owner is None or one[0] not in (op.ATTR, op.INVOKE) or method is None or method.owner is None or path_of(user, one[3]) != SELF:
            return False
        below = self.hierarchy.cone(owner)
        return below is not None and not any(self.hierarchy.derives(each, method.owner) for each in (owner, *below))

    @cached_property
    def _pieces(self) -> frozenset[str]:
        """The texts with which names of attributes are put together."""
        found: set[str] = set()
        for unit in self.program.mentioning("getattr"):
            for function, call, name in unit.computed_uses if not unit.is_cpp else ():
                made = function.definitions[call[6]] if name is None and call[6] >= 0 else None
                parts = op.reads(made) if made is not None and made[0] in (op.FORMAT, op.BINARY) else ()
                texts = (unit.ir.constants[made[3]] or ()) if made is not None and made[0] == op.FORMAT else ()
                found.update(text for text in (*texts, *map(function.constant, parts)) if isinstance(text, str) and text)
        return frozenset(found)


def _is_local(function: Function, parent: Function) -> bool:
    return function.owner is None and parent.code.kind != "module"


def _is_read(function: Function, parent: Function) -> bool:
    """Whether anybody reads the variable of a local function."""
    uses = parent.uses[function.definition[2]] if function.definition is not None else []
    cells = {use[2] for use in uses if use[0] == op.STORE}
    loads = (one for each in parent.below if each not in function.below for one in each.by_opcode[op.LOAD])
    return any(use[0] not in (op.STORE, op.BIND, op.UNBIND) for use in uses) or any(one[3] in cells for one in loads)


def _uses(unit: Unit, name: str) -> Iterator[tuple[Function, Instruction]]:
    """The instructions of a file that read a name, an attribute or a text of that name, or import it."""
    yield from (*unit.name_uses.get(name, ()), *unit.attribute_uses.get(name, ()), *unit.taken.get(name, ()), *texts_of(unit, name))
