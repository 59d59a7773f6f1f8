"""The nodes of value flow: registers, cells, globals, attributes, results; and where the objects of each come from, calls aside."""

from __future__ import annotations

from collections.abc import Callable

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import (
    Activation,
    ClassObject,
    Constant,
    Container,
    External,
    FunctionObject,
    Instance,
    Key,
    Many,
    ModuleObject,
    Object,
    Objects,
    Rest,
    Scalar,
    Site,
    Unknown,
)
from streamlint.facts.files.cuda_arms import CudaArms
from streamlint.facts.files.declarations import annotation_of
from streamlint.facts.files.dispatched import Dispatched
from streamlint.facts.files.hierarchy import Hierarchy
from streamlint.facts.files.program import Program, Unit
from streamlint.facts.files.scopes import Definition, ExternalName, Scopes
from streamlint.facts.values.frames import Arguments, Frame, Joint
from streamlint.facts.values.nodes import Keyed, Node, Solver
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import led_to
from streamlint.models import Models, builtin

DEEPEST = 5
"""Calls behind one another whose arguments are distinguished; behind that a function stands for all its calls."""
DEEPEST_CPP = 2
"""The same for C++, whose overloads and templates multiply."""


class Flow:
    """Value flow of a program. Subclasses add members, calls and library functions."""

    def __init__(self, program: Program, models: Models | None = None) -> None:
        self.program = program
        self.models = models if models is not None else builtin("python")
        program.tell("python", models)
        self.scopes = Scopes()
        self.hierarchy = Hierarchy(program, self.scopes)
        self.dispatched = Dispatched(program, self.scopes, self.hierarchy)
        self.arms = CudaArms(self.models, self.scopes)
        self.solver = Solver(self.joined, self.gathered, self.gathered_more, self.gathered_names, self.gathered_all)
        self.objects = Objects()
        self.solver.beyond = self.objects(Unknown, "budget")
        self.scalar: Object = self.objects(Scalar)
        self._joins: dict[Object, Object] = {}
        self._gathered: dict[Object, Object] = {}
        self._members: dict[Many, Node] = {}
        self._through: dict[tuple[object, ...], Node] = {}
        self._joints: dict[tuple[object, ...], Joint] = {}
        self._frames: dict[tuple[object, ...], Frame] = {}
        self._globals: dict[tuple[Unit, str], Node] = {}
        self._stars: dict[Unit, tuple[Unit, ...]] = {}
        self._names_of: dict[Unit, frozenset[str]] = {}
        self._attributes: dict[tuple[Object, str], Node] = {}
        self._class_attributes: dict[tuple[ClassInfo, str], Node] = {}
        self._holding: dict[Object, Node] = {}
        self._arguments: dict[tuple[Frame, Instruction], Arguments] = {}
        self._no_arguments: dict[tuple[Site | None, Key | None], Arguments] = {}
        self._methods: dict[tuple[Object, str], Node] = {}
        self._joined_arguments: dict[tuple[Arguments, Arguments], Arguments] = {}
        self._receivers: dict[Object, Arguments] = {}
        self._constructions: dict[ClassInfo, dict[Arguments, None]] = {}
        self._construction_listeners: dict[ClassInfo, list[Callable[[Arguments], None]]] = {}
        self._dependence: dict[Function, frozenset[int]] = {}
        self._apart: dict[Function, dict[Frame, list[tuple[Node, Node, Site | None]]]] = {}
        self._depths: dict[Function, int] = {}
        self._backs: dict[Function, bool] = {}
        self._chain_counts: dict[tuple[Function, int], int] = {}
        self._calls: dict[Function, dict[Object | None, dict[Arguments, FunctionObject]]] = {}
        self.entered_at: dict[tuple[Function, Instruction], dict[Function, None]] = {}  # by instruction: the functions that it enters
        self.entered_through: dict[tuple[Function, Instruction], dict[Joint, None]] = {}  # by instruction: calls of one of many
        self._listeners: dict[Function, dict[Object | None, list[Callable[[FunctionObject, Object | None, Arguments], None]]]] = {}
        self._callees: dict[tuple[Frame, Instruction], Node] = {}
        self._declared_nodes: dict[tuple[Unit, str], Node | None] = {}
        self._given: dict[tuple[Site | None, tuple[Object, ...]], Arguments] = {}
        self._set_arguments: dict[tuple[Object, Arguments], Arguments] = {}
        self._spread_nodes: dict[tuple[Node, Key | None], Node] = {}
        self._operands: dict[tuple[Frame, Instruction, tuple[int, ...]], Arguments] = {}
        self._rest_nodes: dict[tuple[Rest, Key | None], Node] = {}
        self._keyed: dict[Object, Keyed] = {}
        self._keyed_of_nodes: dict[Node, Keyed] = {}
        self._rests_held: dict[Rest, Node] = {}
        self._element_nodes: dict[Node, Node] = {}
        self._iterables: dict[Node, tuple[Node, ...]] = {}  # by the node of the elements; of what is mapped the function, too
        self._all_nodes: dict[Object, Node] = {}
        self._remaining: dict[Arguments, Arguments] = {}
        self._rests: dict[Arguments, Arguments] = {}
        self._mapped: dict[Arguments, Node] = {}
        self._outcomes: dict[Site, Node] = {}
        self._contained: dict[tuple[Container, Key | None], Node] = {}

    # --- many objects

    def joined(self, value: Object) -> Object:
        """The object that stands for this one where a node holds many."""
        raise NotImplementedError

    def gathered(self, value: Object) -> Object:
        """What stands for an object where a node holds too many even of the joined ones."""
        raise NotImplementedError

    def gathered_more(self, value: Object) -> Object:
        """The same where these are too many."""
        raise NotImplementedError

    def gathered_names(self, value: Object) -> Object:
        """The same where even these are."""
        raise NotImplementedError

    def gathered_all(self, value: Object) -> Object:
        """The same where even these are."""
        raise NotImplementedError

    # --- frames and nodes

    def frame(
        self, function: Function, outer: Frame | None = None, receiver: Object | None = None, arguments: Arguments | None = None
    ) -> Frame:
        """The frame of a function entered in this way."""
        key = (function, outer, receiver, arguments)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = Frame(function, outer, receiver, arguments)
        return found

    def base(self, function: Function) -> Frame:
        """The frame that stands for all calls of a function."""
        outer = self.base(function.parent) if function.captures and function.parent is not None else None
        return self.frame(function, outer)

    def register(self, frame: Frame, register: int) -> Node:
        """A register of a frame."""
        found = frame.registers.get(register)
        if found is None:
            definition = frame.function.definitions[register]
            place = (frame.function, definition) if definition is not None and definition[1] >= 0 else None
            found = frame.registers[register] = Node(
                lambda node: self.define(frame, definition, self.found_for(frame, register, node)), place
            )
        return found

    def found_for(self, frame: Frame, register: int, node: Node) -> Node:
        """The node at which what is found for a register arrives: it passes by what the user declares of it."""
        raise NotImplementedError

    def found_for_field(self, owner: ClassInfo, member: str, node: Node) -> Node:
        """The same of a member of the objects of a class."""
        raise NotImplementedError

    def define(self, frame: Frame, instruction: Instruction | None, node: Node) -> None:
        """Find where a register's objects come from."""
        raise NotImplementedError

    def holding(self, value: Object) -> Node:
        """A node that holds one object."""
        found = self._holding.get(value)
        if found is None:
            found = self._holding[value] = Node(None)
            self.solver.add(found, value)
        return found

    def result(self, frame: Frame) -> Node:
        """What calls of a frame return."""
        if frame.result is None:
            frame.result = Node(lambda node: self._join(frame, op.RETURN, node))
        return frame.result

    def yielded(self, frame: Frame) -> Node:
        """What a generator gives, one after the other."""
        if frame.yielded is None:
            frame.yielded = Node(lambda node: self._yields(frame, node))
        return frame.yielded

    def _join(self, frame: Frame, opcode: int, node: Node) -> None:
        for one in frame.function.by_opcode[opcode]:
            register = one[2] if opcode == op.RETURN else one[3]
            if register == op.NONE:
                self.solver.add(node, self.objects(Constant, None))
            else:
                self.solver.edge(self.register(frame, register), node)

    def _yields(self, frame: Frame, node: Node) -> None:
        self._join(frame, op.YIELD, node)
        for one in frame.function.by_opcode[op.YIELD_FROM]:
            self.iterate(self.register(frame, one[3]), node)

    def iterate(self, iterable: Node, target: Node) -> None:
        """The elements of what a node holds arrive at another one."""
        raise NotImplementedError

    # --- names

    def cell(self, frame: Frame, name: str, owner: int) -> Node:
        """A variable that closures share, seen from a frame."""
        home: Frame | None = frame
        while home is not None and home.function.code.number != owner:
            home = home.outer
        if home is None:  # a frame that was entered without its surroundings
            home = self.base(frame.function.unit.function(owner))
        found = home.cells.get(name)
        if found is None:
            place = home
            found = home.cells[name] = Node(lambda node: self._stored(place, name, node))
        return found

    def _stored(self, home: Frame, name: str, node: Node) -> None:
        constant = (name, home.function.code.number)
        for function in home.function.below:
            frame = home if function is home.function else None
            for one in function.by_opcode[op.STORE]:
                if function.unit.ir.constants[one[2]] == constant:
                    self.solver.edge(self.register(frame or self.base(function), one[3]), node)

    def global_name(self, unit: Unit, name: str) -> Node:
        """A global name of a file."""
        key = (unit, name)
        found = self._globals.get(key)
        if found is None:
            found = self._globals[key] = Node(lambda node: self._global(unit, name, node))
        return found

    def _global(self, unit: Unit, name: str, node: Node) -> None:
        for function, register in unit.globals.get(name, ()) if unit.is_cpp else self.arms.stored(unit, name):
            self.solver.edge(self.register(self.base(function), register), node)
        if name in unit.globals:
            self.stored_on_module(unit, name, node)
            return
        held = [target for target in self._starred(unit) if name in self._global_names(target)]
        for target in held:
            self.solver.edge(self.global_name(target, name), node)
        if not held:
            path = self.program.modules.submodule(unit.path, name)
            if path is not None:
                self.solver.add(node, self.objects(ModuleObject, self.program.units[path]))
            else:
                libraries = [module for module, taken in unit.imports if taken == "*" and not self.program.imported(module, unit)]
                known = next((f"{m}.{name}" for m in libraries if self.knows(f"{m}.{name}")), name)
                self.outside(unit, known, node)

    def stored_on_module(self, unit: Unit, name: str, node: Node) -> None:
        """What other files assign to a global name of a file: ``module.x = …``."""
        raise NotImplementedError

    def outside(self, unit: Unit, name: str, target: Node) -> None:
        """What a name means that no file of the program defines arrives at a node."""
        self.meant(ExternalName(name), target)

    def _starred(self, unit: Unit) -> tuple[Unit, ...]:
        """The files from which a file takes all names."""
        found = self._stars.get(unit)
        if found is None:
            found = self._stars[unit] = tuple(dict.fromkeys(unit.starred()))
        return found

    def taken_by_package(self, unit: Unit) -> list[str]:
        """The names that the file of a package takes from files of the program."""
        found: set[str] = set()
        units = [unit] if unit.path.endswith("__init__.py") else []
        for one in units:
            for module, taken in one.imports:
                if taken is not None and taken != "*" and self.program.imported(module, one) is not None:
                    found.add(taken)
            for other in self._starred(one):
                found.update(other.defined)
                if other not in units and other.path.endswith("__init__.py"):
                    units.append(other)
        return sorted(found)

    def _global_names(self, unit: Unit) -> frozenset[str]:
        """The global names of a file, also those that it takes from others with all their names."""
        found = self._names_of.get(unit)
        if found is None:
            found = self._names_of[unit] = frozenset(name for each in led_to([unit], self._starred) for name in each.globals)
        return found

    def knows(self, name: str) -> bool:
        """Whether a model row is about a dotted name."""
        return self.models.call(name) is not None or self.models.type_named(name) is not None or self.models.attribute(name) is not None

    def meant(self, definition: Definition, target: Node) -> None:
        """A definition that a name means arrives at a node."""
        if isinstance(definition, ClassInfo):
            self.solver.add(target, self.objects(ClassObject, definition))
        elif isinstance(definition, Function):
            self.solver.add(target, self.function_object(definition, None))
        elif isinstance(definition, Unit):
            self.solver.add(target, self.objects(ModuleObject, definition))
        elif not self.library_constant(definition.name, target):
            self.solver.add(target, self.objects(External, definition.name))

    def library_constant(self, name: str, target: Node) -> bool:
        """What a name of a library stands for, if that is an object of its own, arrives at a node."""
        raise NotImplementedError

    def function_object(self, function: Function, frame: Frame | None) -> FunctionObject:
        """A function of the program, defined in a frame (that of its parent; None for all)."""
        outer = None
        if function.captures:
            outer = frame if frame is not None else self.base(function).outer
        return self.objects(FunctionObject, function, outer)

    # --- declared types

    def declared(self, unit: Unit, annotation: str, target: Node) -> bool:
        """An object of the type that an annotation names arrives at a node. Returns whether the annotation says a type."""
        raise NotImplementedError

    # --- attributes of objects

    def attribute(self, value: Instance, name: str) -> Node:
        """An attribute of the objects of a class, as far as it is stored in them."""
        key = (value, name)
        found = self._attributes.get(key)
        if found is None:
            found = self._attributes[key] = Node(lambda node: self._attribute(value, name, node))
        return found

    def _attribute(self, value: Instance, name: str, node: Node) -> None:
        order = self.hierarchy.order(value.definition)
        node = self.found_for_field(value.definition, name, node)
        for one in order:
            self._stored_in(one, value, name, node)
        for one in self._beside(value, order):
            self._stored_in(one, self.objects(Instance, one, False), name, node)
        self.stored_outside(value, name, node)
        self.given_as_field(value, name, node)
        said = [(one.unit, annotation) for one in order if (annotation := annotation_of(one, name)[0])]
        if said:
            self.solver.at_last(lambda: self.declared_as_attribute(said, node))

    def _beside(self, value: Instance, order: list[ClassInfo]) -> dict[ClassInfo, None]:
        """The classes that objects of derived classes have beside those in the order of a class: these, and what they mix in."""
        derived = () if value.exact else self.hierarchy.cone(value.definition) or ()
        return {each: None for one in derived for each in self.hierarchy.order(one) if each not in order}

    def given_as_field(self, value: Instance, name: str, node: Node) -> None:
        """What the objects of a class without a constructor are given for a field."""
        raise NotImplementedError

    def _stored_in(self, definition: ClassInfo, value: Instance, name: str, node: Node) -> None:
        for store in definition.own_stores.get(name, ()):
            frame = self.frame_of_store(store.function, value)
            self.solver.edge(self.register(frame, store.value), node)

    def frame_of_store(self, function: Function, receiver: Instance) -> Frame:
        """The frame of a method, or of a function inside of it, for a receiver."""
        if function.owner is not None:
            return self.frame(function, None, receiver)
        return self.base(function)

    def declared_as_attribute(self, said: list[tuple[Unit, str]], node: Node) -> None:
        """What annotations say of an attribute, the first that names a type, where the program does not show what is stored in it."""
        raise NotImplementedError

    def stored_outside(self, value: Instance, name: str, node: Node) -> None:
        """Stores to an attribute from outside of the methods of the class."""
        raise NotImplementedError

    def class_attribute(self, definition: ClassInfo, name: str) -> Node:
        """What a class's body assigns to a name, and what others assign to it there."""
        key = (definition, name)
        found = self._class_attributes.get(key)
        if found is None:
            found = self._class_attributes[key] = Node(lambda node: self._class_attribute(definition, name, node))
        return found

    def _class_attribute(self, definition: ClassInfo, name: str, node: Node) -> None:
        frame = self.base(definition.body)
        for register in definition.assigned.get(name, ()):
            self.solver.edge(self.register(frame, register), node)
        self.stored_on_class(definition, name, node)

    def stored_on_class(self, definition: ClassInfo, name: str, node: Node) -> None:
        """What is assigned to an attribute of a class behind its body: ``cls.x = …``, ``Class.x = …``."""
        raise NotImplementedError

    # --- what nothing is known of

    def unknown(self, target: Node, reason: str) -> None:
        """An object of which nothing is known arrives at a node."""
        self.solver.add(target, self.objects(Unknown, reason))

    def activation(self, frame: Frame, kind: str) -> Object:
        """What calling a generator function or coroutine function gives."""
        return self.objects(Activation, frame, kind)

    def container(self, kind: str, frame: Frame, instruction: Instruction) -> Object:
        """A container made by an instruction."""
        return self.objects(Container, kind, frame, instruction)
