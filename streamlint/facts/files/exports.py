"""What the C++ of a program makes known to Python, by name: functions and classes of modules, operators of PyTorch's dispatcher."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from os.path import dirname
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.files.cpp_scopes import last_part, scope_of
from streamlint.facts.files.program import Program, Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import spelled

_NAMED_BY_BUILD = "TORCH_EXTENSION_NAME"
_REGISTERS = "RegisterOperators"
_TABLE = "PyMethodDef"


class Export(NamedTuple):
    """A call that binds a function: the function in which it stands, the register of what is bound, the name; ``module`` is "" where
    the build decides it or another function opens it, ``definition`` the class whose method it is."""

    within: Function
    instruction: Instruction
    register: int
    name: str
    module: str
    definition: ClassInfo | None = None
    is_operator: bool = False
    is_of_c: bool = False  # by the C API: its first argument is the module


def marks(program: Program) -> list[str]:
    """What stands in files that bind functions."""
    return sorted(program.rows_of("cuda").known("module-macro", "operator-macro", "binding-type", "registers-operators"))


class Exports:
    """All that a program's C++ exports."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.functions: dict[str, list[Export]] = defaultdict(list)  # by name
        self.classes: dict[str, list[tuple[str, ClassInfo]]] = defaultdict(list)  # by name: the module and the class
        self.members: dict[tuple[ClassInfo, str], list[Export]] = defaultdict(list)
        units = dict.fromkeys(unit for mark in (_TABLE, *marks(program)) for unit in program.cpp.mentioning(mark))
        for unit in units:
            self._read(unit)

    def _read(self, unit: Unit) -> None:
        self._tables(unit)
        for function in unit.functions:
            for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.CONSTRUCT]):
                held = self._class_of(function, one)
                if held is not None:
                    self.classes[held[1]].append((self._module(function), held[0]))
            for one in function.by_opcode[op.INVOKE]:
                if function.text(one[4]) == "op" and len(one) > 7:
                    self._registered(function, one)
                elif function.text(one[4]) in function.known("binds", "binds-operator") and len(one) > 7:
                    for export in self._exported(function, one):
                        if export.definition is not None:
                            self.members[export.definition, export.name].append(export)
                        else:
                            self.functions[export.name].append(export)

    def _tables(self, unit: Unit) -> None:
        """``static PyMethodDef methods[] = {{"name", function, METH_VARARGS, …}, …}`` of a module."""
        body = unit.body
        made = (one for one in body.by_opcode[op.CONSTRUCT] if (body.unit.ir.constants[one[3]] or ("",))[0] == "PyModuleDef")
        module = next((str(body.constant(one[6])) for one in made if len(one) > 6), "")
        for one in body.by_opcode[op.CAST]:
            kind, table = body.unit.ir.constants[one[3]], body.definitions[one[4]]
            if not module or kind is None or kind[0] != _TABLE or table is None or table[0] != op.BUILD:
                continue
            for entry in (body.definitions[row] for row in table[4:]):
                if entry is not None and entry[0] == op.BUILD and len(entry) > 5 and isinstance(name := body.constant(entry[4]), str):
                    self.functions[name].append(Export(body, entry, entry[5], name, module, None, False, True))

    def _registered(self, function: Function, one: Instruction) -> None:
        """``static auto registry = torch::RegisterOperators().op("space::name", &f)``."""
        made, name = self._receiver(function, one[3]), function.constant(one[6])
        called = function.dotted(made[3]) if made is not None and made[0] == op.CALL else ""
        if last_part(called) == _REGISTERS and isinstance(name, str):
            space, _, plain = name.partition("(")[0].strip().rpartition("::")
            self.functions[plain].append(Export(function, one, one[7], plain, space, None, True))

    def _module(self, function: Function) -> str:
        """The name of the module that a function opens; "" if it opens none, or the build names it."""
        if function.code.name not in function.known("module-macro") or not function.code.parameters:
            return ""
        name = function.code.parameters[0].name
        return "" if name == _NAMED_BY_BUILD else name

    def _exported(self, function: Function, one: Instruction) -> Iterator[Export]:
        name = function.constant(one[6])
        if not isinstance(name, str):
            return
        if function.code.name in function.known("operator-macro"):
            space = function.code.parameters[0].name if function.code.parameters else ""
            plain = name.partition("(")[0].rpartition("::")[2].partition(".")[0].strip()
            yield Export(function, one, one[7], plain, space, None, True)
            return
        made = self._receiver(function, one[3])
        held = self._class_of(function, made) if made is not None else None
        yield Export(function, one, one[7], name, self._module(function), held[0] if held is not None else None)

    def _receiver(self, function: Function, register: int) -> Instruction | None:
        """What made the object that things are bound to, before a chain of bindings."""
        one = function.definitions[register]
        while one is not None and one[0] in (op.INVOKE, op.COPY, op.CAST, op.REBIND):
            one = function.definitions[one[5] if one[0] == op.REBIND else one[4] if one[0] == op.CAST else one[3]]
        return one

    def _class_of(self, function: Function, one: Instruction) -> tuple[ClassInfo, str] | None:
        """The class that `py::class_<C>(m, "name")` exports, and its name."""
        cpp, scope = self.program.cpp, scope_of(function)
        if one[0] == op.CALL:
            callee = function.definitions[one[3]]
            text = function.text(callee[3]) if callee is not None and callee[0] == op.NAME else ""
            template = function.code.templates.get(one[1], ()) if one[1] >= 0 else ()
            kind = spelled(template[0]) if template else ""
        elif one[0] == op.CONSTRUCT:
            made = function.unit.ir.constants[one[3]]
            text = str(made[0]) if made is not None else ""
            kind = str(made[1][0][0]) if made is not None and made[1] and made[1][0] is not None else ""
        else:
            return None
        if last_part(text) != "class_" or not kind or len(one) < 7:
            return None
        name = function.constant(one[6])
        definition = cpp.find_class(function.unit, scope, kind)
        return (definition, name) if definition is not None and isinstance(name, str) else None

    # --- what a name means

    def find(self, name: str, is_known: bool, near: Unit | None = None) -> list[Export] | ClassInfo:
        """What a dotted name of Python stands for. ``is_known``: it is one of a library that a model knows. Of several of a name that
        the build gives a module, the one in the folder of the file that asks."""
        parts = name.split(".")
        if parts[:2] == ["torch", "ops"]:
            return self._operators(parts[2:])
        last, heads = parts[-1], parts[:-1]
        for held in self.classes.get(last, ()):
            if held[0] in heads or (not held[0] and heads and not is_known):
                return held[1]
        functions = [one for one in self.functions.get(last, ()) if not one.is_operator]
        named = [one for one in functions if one.module in heads and one.module]
        if named or not heads or is_known:
            return named
        return _of_one_file([one for one in functions if not one.module], near)

    def _operators(self, parts: list[str]) -> list[Export]:
        if len(parts) < 2:
            return []
        return [one for one in self.functions.get(parts[1], ()) if one.is_operator and one.module == parts[0]]

    @cached_property
    def bound(self) -> dict[Function, list[Export]]:
        """The functions that Python may call, with the exports whose function each may be."""
        found: dict[Function, list[Export]] = {}
        for exports in (*self.functions.values(), *self.members.values()):
            for one in exports:
                for target in dict.fromkeys(self.targets(one)):
                    found.setdefault(target, []).append(one)
        return found

    def of(self, function: Function) -> list[Export]:
        """The exports whose function this may be, by the name that is bound."""
        return self.bound.get(function, [])

    def targets(self, export: Export) -> list[Function]:
        """The functions that a binding binds, as far as names alone tell."""
        within = export.within
        made = within.definitions[export.register]
        while made is not None and made[0] == op.CAST:
            made = within.definitions[made[4]]
        if made is None:
            return []
        if made[0] == op.FUNCTION:
            return [within.unit.function(made[3])]
        if made[0] not in (op.NAME, op.ADDRESS_NAME):
            return []
        name = within.text(made[3])
        found = self.program.cpp.find(within.unit, scope_of(within), name)
        functions = [one for one in found if isinstance(one, Function)]
        owner = self.program.cpp.class_named(within.unit, scope_of(within), name.rpartition("::")[0])
        return functions or (owner.methods.get(last_part(name), []) if owner is not None else [])


def _of_one_file(exports: list[Export], near: Unit | None) -> list[Export]:
    """Exports of one name, if one file has them; of several, if one in the folder of the file that asks has them."""
    if near is not None and len({one.within.unit for one in exports}) > 1:
        exports = [one for one in exports if dirname(one.within.unit.path) == dirname(near.path)]
    return exports if len({one.within.unit for one in exports}) == 1 else []
