"""What Python itself calls: the methods behind operators, subscripts, truth tests, and functions of the language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import (
    Activation,
    BoundMethod,
    ClassObject,
    Constant,
    Container,
    External,
    FunctionObject,
    Group,
    Instance,
    Many,
    ModuleObject,
    Object,
    Site,
)
from streamlint.facts.files.program import Unit
from streamlint.facts.values.frames import Arguments, Frame
from streamlint.facts.values.nodes import Node
from streamlint.facts.values.protocols import Protocols
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul", "&": "and", "|": "or",
    "^": "xor", "<<": "lshift", ">>": "rshift",
}  # fmt: skip
COMPARE = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
MIRRORED = {"__lt__": "__gt__", "__gt__": "__lt__", "__le__": "__ge__", "__ge__": "__le__"}
UNARY = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}
OF_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "len": ("__len__",), "bool": ("__bool__", "__len__"), "str": ("__str__", "__repr__"), "repr": ("__repr__",), "hash": ("__hash__",),
    "int": ("__int__", "__index__"), "float": ("__float__", "__index__"), "range": ("__index__",), "abs": ("__abs__",),
    "round": ("__round__",), "format": ("__format__", "__str__"), "print": ("__str__", "__repr__"), "bytes": ("__bytes__",),
    "next": ("__next__",), "reversed": ("__reversed__",), "divmod": ("__divmod__",), "hasattr": ("__getattr__",),
    "getattr": ("__getattr__",), "setattr": ("__setattr__",),
    **dict.fromkeys(
        "iter list tuple set dict sorted sum any all min max enumerate zip map filter frozenset container.extend scalar.join".split(),
        ("__iter__", "__getitem__"),
    ),
    "scalar.format": ("__format__", "__str__", "__repr__"),
}  # fmt: skip
"""By function of the language: the methods of its arguments that it calls, the first that there is."""
SIZED = frozenset({"list", "tuple", "sorted", "reversed", "container.extend", "scalar.join"})
"""Functions that ask their argument for its length, too."""
OF_ALL = frozenset({"print", "scalar.format"})
"""Functions that do so with each argument."""
OF_ELEMENTS = dict.fromkeys(("container.index", "container.remove", "container.count"), ("__eq__",))
"""By method of a container: the methods of its elements that it calls."""
TEXT = ("__format__", "__str__", "__repr__")
EFFECTS = (op.SET_ITEM, op.DEL_ITEM, op.SET_ATTR, op.BRANCH)
"""Instructions without a result that may call a method."""


class Operators(Protocols):
    """Value flow through methods that the language calls."""

    def special(self, value: Object, names: tuple[str, ...], arguments: Arguments, target: Node) -> None:
        """Call the first of several methods that an object has."""
        if isinstance(value, Many) and value.kind == "object":
            self.called_through(value, arguments, target, names)
        if isinstance(value, External):
            self._of_type(value, names, target)
        if not isinstance(value, Instance):
            return
        for name in names:
            if self.has_method(value, name) or (not value.exact and self.hierarchy.definers(value.definition, name)):
                self.solver.when(self.method_node(value, name, arguments.site), lambda held: self.call(held, arguments, target))
                return

    def _of_type(self, value: External, names: tuple[str, ...], target: Node) -> None:
        """What an operator makes of a type of a library: ``ctypes.c_float * count`` is one of arrays."""
        for name in names:
            row = self.models.call(f"{value.name}.{name}")
            if row is not None and row.effect == "namespace":
                self.solver.add(target, self.objects(External, str(row.get("name")), None))

    def operands(self, frame: Frame, one: Instruction, *registers: int) -> Arguments:
        """Registers as the arguments of a call that an instruction makes."""
        key = (frame, one, registers)
        found = self._operands.get(key)
        if found is None:
            found = self._operands[key] = Arguments(frame, Site(frame.function, one))
            found.positional = [self.register(frame, register) for register in registers]
        return found

    def _asked(self, frame: Frame, one: Instruction, receiver: int, names: tuple[str, ...], given: tuple[int, ...], target: Node) -> None:
        arguments = self.operands(frame, one, *given)
        self.solver.when(self.register(frame, receiver), lambda value: self.special(value, names, arguments, target))

    def by_operator(self, frame: Frame, one: Instruction, node: Node) -> None:
        """The methods behind an operator."""
        operator = frame.function.unit.ir.constants[one[3]]
        if one[0] == op.UNARY:
            self._asked(frame, one, one[4], (UNARY[operator],) if operator in UNARY else ("__bool__", "__len__"), (), node)
            return
        left, right = one[4:6]
        if one[0] == op.COMPARE and operator in COMPARE:
            name = COMPARE[operator]
            self._asked(frame, one, left, (name,) if name != "__ne__" else ("__ne__", "__eq__"), (right,), node)
            self._asked(frame, one, right, (MIRRORED.get(name, name),), (left,), node)
        elif one[0] == op.COMPARE and operator in ("in", "not in"):
            self.solver.when(self.register(frame, right), lambda value: self._searched_for(value, frame, one, node))
            self._asked(frame, one, right, ("__contains__", "__iter__", "__getitem__"), (left,), node)
        elif operator in BINARY:
            if operator == "%" and isinstance(frame.function.constant(left), str):
                self._asked(frame, one, right, TEXT[1:], (), node)
            names = (f"__{BINARY[operator]}__",)
            self._asked(frame, one, left, (f"__i{BINARY[operator]}__", *names) if one[0] == op.INPLACE else names, (right,), node)
            self._asked(frame, one, right, (f"__r{BINARY[operator]}__",), (left,), node)

    def _searched_for(self, value: Object, frame: Frame, one: Instruction, node: Node) -> None:
        """``x in y`` compares ``x`` with the elements of a list."""
        if isinstance(value, Container) and value.kind in ("list", "tuple"):
            arguments = self.operands(frame, one, one[4])
            self.elements_asked(self.holding(value), ("__eq__",), arguments, node)

    def effect(self, frame: Frame, one: Instruction) -> Node:
        """What an instruction without a result calls."""
        key = (frame, one)
        found = self._callees.get(key)
        if found is None:
            found = self._callees[key] = Node(lambda node: self._effect(frame, one, node), (frame.function, one))
        return found

    def _effect(self, frame: Frame, one: Instruction, node: Node) -> None:
        if one[0] == op.SET_ITEM:
            self._asked(frame, one, one[2], ("__setitem__",), one[3:5], node)
        elif one[0] == op.DEL_ITEM:
            self._asked(frame, one, one[2], ("__delitem__",), one[3:4], node)
        elif one[0] == op.BRANCH:
            self._asked(frame, one, one[2], ("__bool__", "__len__"), (), node)
        else:
            arguments = self.operands(frame, one, one[4])
            name = frame.function.text(one[3])
            self.solver.when(self.register(frame, one[2]), lambda value: self._set(value, name, arguments, node))

    def _set(self, value: Object, name: str, arguments: Arguments, node: Node) -> None:
        """An attribute is set: a property's setter runs, or ``__setattr__``."""
        if isinstance(value, Many):
            if value.kind == "object":
                self.each(value, lambda one: self._set(one, name, arguments, node))
            return
        for definition in self.possible_classes(value) if isinstance(value, Instance) else ():
            found = self.hierarchy.lookup(definition, name)
            for method in found[1] if found is not None else ():
                if f"{name}.setter" in method.decorators:
                    self.enter(self.function_object(method, None), value, arguments, node)
        if isinstance(value, Instance):
            self.set_described(value, name, arguments, node)
        self.special(value, ("__setattr__",), arguments, node)

    def subscripted(self, frame: Frame, one: Instruction) -> None:
        """``x[i]`` with a class for ``x``."""
        arguments = self.operands(frame, one, one[4])

        def arrived(value: Object) -> None:
            if isinstance(value, ClassObject) and (found := self.hierarchy.lookup(value.definition, "__class_getitem__")) is not None:
                for method in found[1]:
                    self.notify(self.function_object(method, None), value, arguments)

        self.solver.when(self.register(frame, one[3]), arrived)

    def module_asked(self, module: ModuleObject, frame: Frame, one: Instruction) -> None:
        """A name is taken from a module: its ``__getattr__`` is asked for what the module does not have, ``__path__`` among that."""
        for function, register in module.unit.globals.get("__getattr__", ()):
            self.solver.when(
                self.register(self.base(function), register), lambda held: self.call(held, self.operands(frame, one), Node(None))
            )

    def _module_member(self, value: ModuleObject, name: str, target: Node) -> None:
        if not self._given_lazily(value.unit, name, target):
            super()._module_member(value, name, target)

    def _given_lazily(self, unit: Unit, name: str, target: Node) -> bool:
        """What the ``__getattr__`` of a file gives for a name that it does not have; false if it has that, or no such function."""
        asked = unit.globals.get("__getattr__", ()) if name not in unit.globals else ()
        if not asked or any(taken == "*" for _, taken in unit.imports) or self.program.modules.submodule(unit.path, name) is not None:
            return False
        given = self.handing(self.objects(Constant, name))
        for function, register in asked:
            self.solver.when(self.register(self.base(function), register), lambda held: self.call(held, given, target))
        return True

    def handing(self, value: Object) -> Arguments:
        """The arguments of a call that is given one object."""
        node = self.holding(value)
        found = self._handing.get(node)
        if found is None:
            found = self._handing[node] = Arguments(None, None)
            found.positional = [node]
        return found

    @cached_property
    def _handing(self) -> dict[Node, Arguments]:
        return {}

    def called_by_language(self, name: str, receiver: Object | None, arguments: Arguments) -> None:
        """The methods that a function of the language calls on its arguments, and the functions that it is given."""
        names = OF_FUNCTIONS.get(name, ())
        given, aside = self.no_arguments(arguments.site), Node(None)
        for node in arguments.all if name in OF_ALL else arguments.positional[:1]:
            if names:
                self.solver.when(node, lambda value: self.special(value, names, given, aside))
            if name in SIZED:
                self.solver.when(node, lambda value: self.special(value, ("__len__",), given, aside))
        held = self.holding(receiver) if receiver is not None else arguments.positional[0] if arguments.positional else None
        if held is not None:
            self._called_on_elements(name, held, arguments, aside)
        if name == "hasattr" and len(arguments.positional) > 1 and arguments.site is not None:
            self._looked_for(arguments.positional[0], arguments.site, aside)

    def _called_on_elements(self, name: str, held: Node, arguments: Arguments, aside: Node) -> None:
        """What a function of the language calls on, or with, the elements of a container or iterable."""
        if name in OF_ELEMENTS:
            self.elements_asked(held, OF_ELEMENTS[name], arguments, aside)
        key = arguments.keywords.get("key")
        if key is not None and (name in OF_FUNCTIONS or name == "container.sort"):
            self.given_each(key, held, arguments)
        if name == "filter" and len(arguments.positional) > 1:
            self.given_each(arguments.positional[0], arguments.positional[1], arguments)

    def given_each(self, callee: Node, iterable: Node, arguments: Arguments) -> None:
        """A function is called with the elements of an iterable."""
        each = Arguments(arguments.frame, arguments.site)
        each.positional = [self.given_elements(iterable)]
        self.solver.when(callee, lambda value: self.call(value, each, Node(None)))

    def elements_asked(self, held: Node, names: tuple[str, ...], arguments: Arguments, target: Node) -> None:
        """The elements of a container are asked by a method."""
        self.solver.when(self.given_elements(held), lambda value: self.special(value, names, arguments, target))

    def _looked_for(self, held: Node, site: Site, aside: Node) -> None:
        """``hasattr`` with a name that stands there: the attribute is taken, a property runs."""
        name = site.function.constant(site.instruction[-1])
        if isinstance(name, str):
            self.solver.when(held, lambda value: self.member(value, name, aside, site))

    def by_format(self, frame: Frame, one: Instruction, node: Node) -> None:
        """The methods that give the text of values in an f-string."""
        for register in one[4:]:
            self._asked(frame, one, register, TEXT, (), node)

    def given_elements(self, node: Node) -> Node:
        """The elements of an iterable."""
        found = self._element_nodes.get(node)
        if found is None:
            found = self._element_nodes[node] = Node(lambda target: self.iterate(node, target))
            self._iterables[found] = (node,)
        return found

    def resumed(self, values: Iterable[Object]) -> Iterator[Function]:
        """What runs where the next value of one of some objects is asked for, also behind what goes through them (``enumerate``, ``zip``,
        ``islice``): generators, methods of iterators, and functions that are mapped."""
        waiting, seen = list(values), set[Object]()
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            if isinstance(value, Activation):
                yield value.frame.function
            elif isinstance(value, Instance):
                found = (self.hierarchy.lookup(value.definition, name) for name in ("__iter__", "__next__"))
                methods = (method for each in found if each is not None for method in each[1])
                yield from (method for method in methods if method.is_generator or method.code.name == "__next__")
            elif isinstance(value, FunctionObject):  # nobody goes through a function: it is mapped
                yield value.function
            elif isinstance(value, BoundMethod):
                yield value.method.function
            elif isinstance(value, Group):
                waiting += self._gone_through(value)

    def _gone_through(self, value: Group) -> Iterator[Object]:
        """What a group of iterables takes its elements from."""
        for node in value.nodes:
            for source in self._iterables.get(node, ()):
                self.solver.demand(source)
                self.solver.solve()
                yield from list(source.values)
            if node not in self._iterables and value.kind == "iterable":
                yield from (held for held in list(node.values) if isinstance(held, Group) and held.kind == "tuple")
