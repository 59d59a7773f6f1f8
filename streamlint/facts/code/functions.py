"""The functions and classes of a file, with what their instructions say of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from streamlint.facts.code.exchanged import exchanged
from streamlint.facts.code.keyword_stores import set_by_keyword
from streamlint.facts.code.stores import Store, inner_stores
from streamlint.ir import ClassIR, Code, DeclarationIR, FieldIR, Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Graph, Loop, raising

if TYPE_CHECKING:
    from streamlint.facts.files.program import Unit
    from streamlint.models.traits import Trait


class Function:
    """A function, lambda, class body or module body of a file, with its instructions by the register that they define."""

    __slots__ = ("__dict__", "unit", "written")

    def __init__(self, unit: Unit, written: Code) -> None:
        self.unit = unit
        self.written = written

    def __repr__(self) -> str:
        return f"<{self.name} {self.unit.path}:{self.written.first_row}>"

    @property
    def name(self) -> str:
        """Its qualified name."""
        return self.written.qualname

    @cached_property
    def code(self) -> Code:
        """Its instructions. C++: a method that only its class, in another file, declares to be static was lowered with a receiver."""
        written = self.written
        if self.unit.is_cpp and written.class_name and written.parent == 0 and self.unit.program.cpp.is_declared_static(self):
            return written.without_receiver()
        return exchanged(self.unit, written) if self.unit.is_cpp else written

    def known(self, *traits: Trait) -> frozenset[str]:
        """What the libraries' functions and members are called, by the last parts of their names, that have one of some traits."""
        return self.unit.models.known(*traits)

    def invokes(self, one: Instruction, *traits: Trait) -> bool:
        """Whether an instruction calls a method that is called so."""
        return one[0] == op.INVOKE and self.text(one[4]) in self.unit.models.known(*traits)

    @cached_property
    def control(self) -> Graph:
        """The control flow without exceptions."""
        return Graph.of(self.code, exceptions=False)

    @cached_property
    def phi_order(self) -> list[list[int]]:
        """For each block those that lead to it, in the order of `phi` operands."""
        return self.code.predecessors()

    @cached_property
    def loop_heads(self) -> dict[int, Loop]:
        """The loops by the blocks with which their rounds begin."""
        return {loop.header: loop for loop in self.control.loops}

    @cached_property
    def raising(self) -> frozenset[int]:
        """The blocks from which all ways lead to an exception that leaves the function."""
        return raising(self.code)

    @cached_property
    def homes(self) -> dict[Instruction, tuple[int, int]]:
        """By instruction: its block, and its place in that."""
        return {one: (number, index) for number, block in enumerate(self.code.blocks) for index, one in enumerate(block)}

    def runs_before(self, first: Instruction, second: Instruction) -> bool:
        """Whether an instruction has run before another one whenever that runs, in the same round of a loop."""
        (block, index), (other, place) = self.homes[first], self.homes[second]
        return index < place if block == other else self.control.dominates(block, other)

    def is_followed_by(self, first: Instruction, second: Instruction) -> bool:
        """Whether each path on from an instruction comes to another one."""
        (block, index), (other, place) = self.homes[first], self.homes[second]
        return index < place if block == other else self.control.post_dominates(other, block)

    def is_repeated(self, one: Instruction) -> bool:
        """Whether an instruction stands in a loop of the function."""
        return self.control.innermost[self.blocks[one]] != NOBODY

    @cached_property
    def blocks(self) -> dict[Instruction, int]:
        """By instruction: its block."""
        return {one: block for one, (block, _) in self.homes.items()}

    def ahead(self, one: Instruction) -> Iterator[Instruction]:
        """The instructions that come before one whichever way was taken there, the last one first."""
        block, index = self.homes[one]
        code = self.code.blocks[block][:index]
        while True:
            yield from reversed(code)
            block = self.control.dominators[block]
            if block == NOBODY:
                return
            code = self.code.blocks[block]

    @cached_property
    def definitions(self) -> list[Instruction | None]:
        """By register: the instruction that defines it."""
        found: list[Instruction | None] = [None] * self.code.registers
        for instruction in self.code.instructions():
            if op.DEFINES[instruction[0]]:
                found[instruction[2]] = instruction
        return found

    @cached_property
    def uses(self) -> dict[int, list[Instruction]]:
        """By register: the instructions that read it."""
        found: dict[int, list[Instruction]] = defaultdict(list)
        for instruction in self.code.instructions():
            for register in op.reads(instruction):
                found[register].append(instruction)
        return found

    @cached_property
    def by_opcode(self) -> dict[int, list[Instruction]]:
        """By opcode: the instructions, in order."""
        found: dict[int, list[Instruction]] = defaultdict(list)
        for instruction in self.code.instructions():
            found[instruction[0]].append(instruction)
        return found

    @cached_property
    def reached(self) -> dict[tuple[Instruction, frozenset[Instruction]], dict[int, list[tuple[int, int]]]]:
        """What paths lead to from behind instructions, by these and by what ends the paths; `ordering.places.leading` fills it."""
        return {}

    @cached_property
    def said(self) -> dict[tuple[int, int], tuple[object, ...]]:
        """By register, and how deep it was looked into: what its expression says (`waits.questions.alike`)."""
        return {}

    def default_register(self, index: int) -> int | None:
        """The register of `parent` that holds the default of a parameter (Python)."""
        made, parameters = self.definition, self.code.parameters
        if self.is_cpp or made is None or self.parent is None or not parameters[index].default:
            return None
        number = 4 + sum(1 for one in parameters[:index] if one.default)
        return made[number] if number < len(made) else None

    def default_place(self, index: int) -> tuple[Function, int] | None:
        """The function and its register that hold the default of a parameter, if there is one, in one place."""
        if self.is_cpp:
            code = self.default_of(self.code.parameters[index].name)
            ends = code.by_opcode[op.RETURN] if code is not None else ()
            return (code, ends[0][2]) if code is not None and len(ends) == 1 else None
        register = self.default_register(index)
        return (self.parent, register) if register is not None and self.parent is not None else None

    @cached_property
    def called_names(self) -> frozenset[str]:
        """The last parts of the names by which it may call something: methods, attributes and global names that it reads."""
        members = (self.text(one[4]) for opcode in (op.INVOKE, op.ATTR) for one in self.by_opcode[opcode])
        return frozenset((*members, *(self.text(one[3]) for one in self.by_opcode[op.NAME])))

    @cached_property
    def owner(self) -> ClassInfo | None:
        """The class whose method this is."""
        if self.unit.is_cpp and self.code.kind != "function":
            return None
        if self.unit.is_cpp and self.code.class_name and self.code.parent == 0:
            return self.unit.program.cpp.owner(self)
        parent = self.parent
        return parent.body_of if parent is not None else None

    @property
    def body_of(self) -> ClassInfo | None:
        """The class whose body this is."""
        return self.unit.class_of_body.get(self.code.number) if self.code.kind == "class" else None

    @cached_property
    def parent(self) -> Function | None:
        """The function, class body or module body that it stands in."""
        return self.unit.function(self.code.parent) if self.code.parent >= 0 else None

    @cached_property
    def definition(self) -> Instruction | None:
        """The instruction of `parent` that makes the function."""
        made = self.parent.by_opcode[op.FUNCTION] if self.parent is not None else []
        return next((one for one in made if one[3] == self.code.number), None)

    def default(self, index: int) -> int | None:
        """The register of `parent` with the default of a parameter, or with what the function has captured for it."""
        made, parameters = self.definition, self.code.parameters
        number = 4 + sum(1 for one in parameters[:index] if one.default)
        return made[number] if made is not None and parameters[index].default and number < len(made) else None

    @cached_property
    def decorations(self) -> list[Instruction]:
        """The calls of `parent` that apply decorators to the function, innermost first."""
        found: list[Instruction] = []
        current = self.definition
        while current is not None and self.parent is not None and self.code.kind == "function":
            uses = self.parent.uses[current[2]]
            call = next((one for one in uses if one[0] == op.CALL and one[5:] == (current[2],) and one[4] == op.NONE), None)
            if call is None or any(one[0] in (op.SET_NAME, op.BIND, op.STORE) for one in uses):
                break
            found.append(call)
            current = call
        return found

    @cached_property
    def decorators(self) -> list[str]:
        """The decorators as dotted names; "" for one that is no name."""
        assert self.parent is not None or not self.decorations
        return [self.parent.dotted(call[3]) for call in self.decorations] if self.parent is not None else []

    @cached_property
    def is_static(self) -> bool:
        if self.unit.is_cpp:
            return "static" in self.code.flags
        return "staticmethod" in self.decorators

    @cached_property
    def is_overload(self) -> bool:
        """Whether it only declares one of several signatures."""
        return any(name.rpartition(".")[2] == "overload" for name in self.decorators)

    @cached_property
    def is_class_method(self) -> bool:
        return "classmethod" in self.decorators or self.code.name in ("__new__", "__init_subclass__", "__class_getitem__")

    @cached_property
    def is_property(self) -> bool:
        return any(name.rpartition(".")[2] in ("property", "cached_property", "functools.cached_property") for name in self.decorators)

    @cached_property
    def keeps_results(self) -> bool:
        """Whether a decorator keeps what it gives back for arguments, and does not run it for them again."""
        parent = self.parent
        made = [parent.definitions[call[3]] for call in self.decorations] if parent is not None else []
        names = [parent.dotted(one[3] if one[0] == op.CALL else one[2]) for one in made if parent is not None and one is not None]
        return not self.unit.is_cpp and any(name.rpartition(".")[2] in self.known("keeps-results") for name in names)

    @property
    def is_generator(self) -> bool:
        """Whether a call of it gives a generator."""
        return "generator" in self.code.flags

    @cached_property
    def has_receiver(self) -> bool:
        """Whether the first parameter is the object or class that a method is called on."""
        if self.unit.is_cpp:
            return bool(self.code.parameters) and self.code.parameters[0].name == "this"
        return self.owner is not None and not self.is_static and bool(self.code.parameters)

    @cached_property
    def is_cpp(self) -> bool:
        return self.unit.is_cpp

    @property
    def is_linked(self) -> bool:
        """C++: whether other files can call it by its name."""
        return bool(self.code.class_name) or "static" not in self.code.flags

    def accepts(self, given: int, spread: bool = False) -> bool:
        """C++: whether it can be called with as many arguments, the receiver aside."""
        least, most = self.arity
        return spread or most is None or least <= given <= most

    @cached_property
    def arity(self) -> tuple[int, int | None]:
        """C++: the least and the most arguments that it takes, the receiver aside; None for any number."""
        own = self.code.parameters[1 if self.has_receiver else 0 :]
        plain = [one for one in own if one.kind == "plain"]
        least = len(plain)
        while least and self.default_of(plain[least - 1].name) is not None:
            least -= 1
        return least, None if any(one.kind == "star" for one in own) else len(plain)

    @cached_property
    def declarations(self) -> list[tuple[Unit, DeclarationIR]]:
        """C++: its declarations elsewhere."""
        return self.unit.program.cpp.declarations(self)

    def default_of(self, name: str) -> Function | None:
        """C++: the code that computes a parameter's default, which a declaration may have given."""
        own = [one for one in self.code.parameters if one.kind in ("plain", "star") and one.name != "this"]
        index = next((number for number, one in enumerate(own) if one.name == name), None)
        if index is None:
            return None
        held = [(self.unit, own[index].default)]
        held += [(unit, one.parameters[index].default) for unit, one in self.declarations]
        return next((unit.function(code) for unit, code in held if code is not False), None)

    def dotted(self, register: int) -> str:
        """A register as the dotted name that it was read by; of a call, what is called. "" for anything else."""
        passed: list[int] = []
        while register >= 0 and register not in self._called:
            found = self.definitions[register]
            if found is None or found[0] != op.CALL:
                break
            passed.append(register)
            register = found[3]
        name = self._called[register] if register in self._called else self._dotted(register)
        if passed:
            self._called.update(dict.fromkeys(passed, name))
        return name

    @cached_property
    def _called(self) -> dict[int, str]:
        """By the register of a call: what is called."""
        return {}

    def _dotted(self, register: int) -> str:
        parts: list[str] = []
        while True:
            found = self.definitions[register] if register >= 0 else None
            if found is None:
                return ""
            if found[0] == op.NAME:
                parts.append(self.text(found[3]))
                return ".".join(reversed(parts))
            if found[0] == op.LOAD:
                parts.append(str(self.unit.ir.constants[found[3]][0]))
                return ".".join(reversed(parts))
            if found[0] != op.ATTR and (found[0] != op.INVOKE or parts):
                return ""
            parts.append(self.text(found[4]))
            register = found[3]

    def text(self, constant: int) -> str:
        """A constant of the file that is a name."""
        return str(self.unit.ir.constants[constant])

    def kind_built(self, one: Instruction) -> str:
        """What a ``BUILD`` makes: ``list``, ``tuple`` or ``set``."""
        kind = self.unit.ir.constants[one[3]]
        return str(kind if isinstance(kind, str) else kind[0])

    def constant(self, register: int) -> str | int | None:
        """The text or number that a register is known to hold."""
        found = self.definitions[register] if register >= 0 else None
        if found is None or found[0] != op.CONST:
            return None
        value = self.unit.ir.constants[found[3]]
        return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None

    def truth(self, register: int) -> bool | None:
        """The truth value that a register is known to hold."""
        found = self.definitions[register] if register >= 0 else None
        value = self.unit.ir.constants[found[3]] if found is not None and found[0] == op.CONST else None
        return value if isinstance(value, bool) else None

    def is_parameter(self, register: int, index: int = 0) -> bool:
        """Whether a register holds a parameter of this function, or of one around it (through a cell)."""
        found = self.definitions[register] if register >= 0 else None
        if found is None:
            return False
        if found[0] == op.PARAM:
            return found[3] == index
        if found[0] == op.LOAD:
            name, number = self.unit.ir.constants[found[3]]
            owner = self.unit.function(number)
            parameters = owner.code.parameters
            return len(parameters) > index and parameters[index].name == name
        return False

    def kept_parameter(self, register: int) -> int:
        """The register of the parameter of this function that one holds, also over a variable that inner functions share and nobody sets
        anew; NONE where it holds none."""
        found = self.definitions[register] if register >= 0 else None
        if found is None or found[0] != op.LOAD or self.is_cpp:
            return register if found is not None and found[0] == op.PARAM else op.NONE
        cell = self.unit.ir.constants[found[3]]
        homes = self.unit.function(cell[1]).below if cell[1] == self.code.number else ()
        stores = [one for each in homes for one in each.by_opcode[op.STORE] if self.unit.ir.constants[one[2]] == cell]
        given = stores[0][3] if len(stores) == 1 else op.NONE
        made = self.definitions[given] if given >= 0 and stores[0] in self.by_opcode[op.STORE] else None
        return given if made is not None and made[0] == op.PARAM else op.NONE

    @cached_property
    def method(self) -> Function | None:
        """The method that this is, or stands in."""
        current: Function | None = self
        while current is not None and current.owner is None:
            current = current.parent
        return current

    @cached_property
    def nested(self) -> list[Function]:
        """The functions defined directly in this one."""
        return [one for one in self.unit.functions if one.code.parent == self.code.number]

    @cached_property
    def below(self) -> list[Function]:
        """This function and all that are defined in it."""
        found = [self]
        for one in found:
            found.extend(one.nested)
        return found

    @cached_property
    def captures(self) -> bool:
        """Whether it uses variables of a function around it."""
        return any(owner != self.code.number for one in self.below for _, owner in one.code.cells if not self.holds(owner))

    def on_variable(self, opcode: int, number: int) -> Iterator[tuple[Function, Instruction]]:
        """The loads, stores or addresses of a variable that closures share, which a constant names, each with its function."""
        variable, place = self.unit.ir.constants[number], 2 if opcode == op.STORE else 3
        for each in self.unit.function(variable[1]).below:
            yield from ((each, one) for one in each.by_opcode[opcode] if self.unit.ir.constants[one[place]] == variable)

    def holds(self, number: int) -> bool:
        """Whether a code is this function or defined in it."""
        return any(one.code.number == number for one in self.below)


class ClassInfo:
    """A class of the program."""

    __slots__ = ("__dict__", "ir", "unit")

    def __init__(self, unit: Unit, ir: ClassIR) -> None:
        self.unit = unit
        self.ir = ir

    def __repr__(self) -> str:
        return f"<class {self.ir.qualname} {self.unit.path}:{self.ir.row}>"

    @property
    def name(self) -> str:
        return self.ir.qualname

    @cached_property
    def body(self) -> Function:
        """The code of the class's body."""
        return self.unit.function(self.ir.body)

    @cached_property
    def methods(self) -> dict[str, list[Function]]:
        """The functions that the body defines, by name; several where it defines one name again."""
        found: dict[str, list[Function]] = defaultdict(list)
        for name, number in self.ir.methods:
            found[name].append(self.unit.function(number))
        if not self.unit.is_cpp:
            real = {name: [one for one in methods if not one.is_overload] for name, methods in found.items()}
            return {name: real[name] for name in real if real[name]}
        for method in self.unit.program.cpp.methods_elsewhere(self):
            found[method.code.name].append(method)
        return dict(found)

    @cached_property
    def assigned(self) -> dict[str, list[int]]:
        """What the body assigns to names: the registers of the values."""
        found: dict[str, list[int]] = defaultdict(list)
        signatures = {name for name, _ in self.ir.methods} - self.methods.keys()
        for one in self.body.by_opcode[op.SET_NAME]:
            if (name := self.body.text(one[2])) not in signatures:
                found[name].append(one[3])
        return dict(found)

    def declares(self, name: str) -> bool:
        """Whether the body or a method gives an attribute a type."""
        return name in self.fields or f"self.{name}" in self.annotated

    @cached_property
    def fields(self) -> dict[str, FieldIR]:
        """By name: the fields that the body declares, the first one of each."""
        return {one.name: one for one in reversed(self.ir.fields)}

    @cached_property
    def annotated(self) -> dict[str, str]:
        """By target, as ``self.x``: the annotation with which a method sets it; that of the first method that has one."""
        found: dict[str, str] = {}
        for number in (method.code.number for methods in self.methods.values() for method in methods):
            for text, said in self.unit.annotations.get(number, {}).items():
                found[text] = found.get(text) or said
        return found

    @cached_property
    def own_stores(self) -> dict[str, list[Store]]:
        """Attributes that methods set on their receiver, by name."""
        found: dict[str, list[Store]] = defaultdict(list)
        for methods in self.methods.values():
            for method in methods:
                for store in (one for inner in method.below for one in inner_stores(inner) if method.has_receiver):
                    if store.function.is_parameter(store.receiver) and store.function.method is method:
                        found[store.name].append(store)
                for call, name, value in set_by_keyword(self, method) if method.has_receiver else ():
                    found[name].append(Store(method, call, call[3], name, value))
        return dict(found)
