"""Declared types: what an annotation says that a value is, and what a container that it names holds.

This is also where a declaration of the user's enters (``Annotated[torch.Tensor, "pinned"]``, or the comment that the front ends have made
that of): what is known of a register, an attribute or a result passes by it, and of what is unknown it says the rest. What is known stays
as it is. So no rule knows of declarations.
"""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import (
    Constant,
    Container,
    DeviceValue,
    Group,
    Instance,
    LibraryObject,
    Memory,
    Object,
    SomeClass,
    Unknown,
)
from streamlint.facts.files.declarations import Declaration, Declarations
from streamlint.facts.files.program import Unit
from streamlint.facts.files.scopes import ExternalName
from streamlint.facts.values.frames import Frame
from streamlint.facts.values.keyed import KeyedFlow
from streamlint.facts.values.nodes import Node
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple
from streamlint.support.declared_words import Said

_SCALARS = frozenset({"int", "float", "bool", "str", "bytes", "complex", "builtins.int", "builtins.float", "builtins.bool", "builtins.str"})
_ITERABLES = frozenset(
    "list set frozenset deque List Set FrozenSet Deque Sequence MutableSequence Collection Iterable Iterator Generator AbstractSet"
    " MutableSet AsyncIterable AsyncIterator AsyncGenerator KeysView ValuesView Reversible".split()
)
_MAPPINGS = frozenset("dict Dict Mapping MutableMapping OrderedDict defaultdict DefaultDict ChainMap WeakValueDictionary".split())
_MODULES = ("", "builtins", "typing", "typing_extensions", "collections", "collections.abc", "weakref")
_OPEN_STREAMS = frozenset({"", "external", "parameter"})
"""What is known of a stream of which nobody in view says how it was made."""
DEEPEST_DECLARED = 3
"""Containers in one another of a declared type."""


class Declared(KeyedFlow):
    """Value flow from annotations."""

    def declared(self, unit: Unit, annotation: str, target: Node, depth: int = 0) -> bool:
        if not annotation or not self.program.declares:
            return self._of_named(unit, annotation, target, depth)
        said = False
        for home, base, metadata in self.scopes.with_metadata(unit, annotation):
            value = self.declarations.object_of(home, base, metadata)
            if value is not None:
                self.solver.add(target, value)
            said |= value is not None or self._of_named(home, base, target, depth)
        return said

    def _of_named(self, unit: Unit, annotation: str, target: Node, depth: int) -> bool:
        """The objects of the types that an annotation names, without its metadata."""
        said = False
        for head, inner, one in self.scopes.annotated(unit, annotation) if annotation else ():
            value = self._named_class(head, one) if isinstance(one, ClassInfo) else self.of_type(one)
            if value is None and isinstance(one, ExternalName) and depth < DEEPEST_DECLARED:
                value = self._container_of(unit, one, inner, depth)
            if value is not None:
                self.solver.add(target, value)
                said = True
        return said

    # --- what users declare

    @cached_property
    def declarations(self) -> Declarations:
        """What users declare of the values of the program."""
        return Declarations(self)

    def cpp_declared(self, function: Function, kind: TypeTuple) -> Object | None:
        """C++: what a variable of a type holds or points to; None for types that say too little."""
        raise NotImplementedError

    def as_declared(self, said: Declaration | None, node: Node) -> Node:
        """A node whose values arrive at another one; of what is unknown, and where nothing arrives, a declaration says what it is."""
        if said is None:
            return node
        held = Node(None, node.site)
        declared = said.object

        def arrived(value: Object) -> None:
            self.solver.add(node, declared if isinstance(value, Unknown) else self.refined(value, said.said), held)

        def ended() -> None:
            if not any(isinstance(value, (Memory, LibraryObject)) for value in node.values):
                self.solver.add(node, declared)

        self.solver.when(held, arrived)
        self.solver.at_last(ended)
        return held

    def refined(self, value: Object, said: Said) -> Object:
        """A value of which a declaration says what is not known; what is known stays."""
        if isinstance(value, Memory) and said.space:
            space = value.space if value.space != "unknown" else said.space
            is_open = space == "host" == said.space and value.pinning not in ("pinned", "pageable") and bool(said.pinning)
            evidence = "literal" if space == "device" == said.space else value.evidence
            merged = space, said.pinning if is_open else value.pinning, value.type, evidence
            return value if merged == (value.space, value.pinning, value.type, value.evidence) else self.objects(Memory, *merged)
        if isinstance(value, LibraryObject) and value.kind == "stream" and said.stream and value.detail in _OPEN_STREAMS:
            return self.objects(LibraryObject, value.type, value.kind, said.stream, value.site)
        return value

    def found_for(self, frame: Frame, register: int, node: Node) -> Node:
        if not self.program.declares:
            return node
        said = self.declarations.of_register(frame.function, register)
        annotation = frame.function.code.declared.get(register, "") if said is None and register >= 0 else ""
        held = self.declared_node(frame.function.unit, annotation) if annotation and not frame.function.is_cpp else None
        for value in held.values if held is not None else ():  # a variable that is declared to hold elements of a kind
            if isinstance(value, Group):
                self.solver.add(node, value)
        return self.as_declared(said, node)

    def found_for_field(self, owner: ClassInfo, member: str, node: Node) -> Node:
        return self.as_declared(self.declarations.of_field(owner, member) if self.program.declares else None, node)

    def declared_as_attribute(self, said: list[tuple[Unit, str]], node: Node) -> None:
        def say() -> None:
            any(self.declared(unit, annotation, node) for unit, annotation in said)

        def seen(element: Object) -> None:
            if isinstance(element, Unknown) and node.first("declared"):
                say()

        if all(isinstance(value, Unknown) or (isinstance(value, Constant) and value.value is None) for value in node.values):
            say()
        for value in [value for value in node.values if isinstance(value, Container)]:
            self.solver.when(self.any_element(value), seen)

    def _join(self, frame: Frame, opcode: int, node: Node) -> None:
        if self.program.declares and opcode == op.RETURN:
            node = self.as_declared(self.declarations.of_result(frame.function), node)
        super()._join(frame, opcode, node)
        returns, unit, flags = frame.function.code.returns, frame.function.unit, frame.function.code.flags
        if isinstance(returns, str) and returns and not frame.function.is_cpp and (opcode == op.YIELD or "generator" not in flags):

            def ended(value: Object) -> None:
                if not isinstance(value, Unknown) or not node.first("declared"):
                    return
                if opcode == op.RETURN:
                    self.declared(unit, returns, node)
                elif (held := self.declared_node(unit, returns)) is not None:
                    self.iterate(held, node)

            self.solver.when(node, ended)

    def _named_class(self, head: str, one: ClassInfo) -> Object:
        return self.objects(SomeClass, one) if head == "type" else self.objects(Instance, one, False)

    def _container_of(self, unit: Unit, one: ExternalName, inner: list[str], depth: int) -> Object | None:
        """A container whose elements are of declared types; None where these are not known."""
        module, _, name = one.name.rpartition(".")
        if module not in _MODULES or not inner:
            return None
        if name in ("tuple", "Tuple") and inner[-1:] != ["Ellipsis"]:
            return self._tuple_of([self.declared_node(unit, each, depth) for each in inner])
        if name in ("tuple", "Tuple") or name in _ITERABLES:
            held = self.declared_node(unit, inner[0], depth)
            return self.objects(Group, "iterable", (held,)) if held is not None else None
        if name in _MAPPINGS and len(inner) > 1:
            keys, held = (self.declared_node(unit, each, depth) for each in inner[:2])
            return self.objects(Group, "mapping", (held, keys or self.holding(self.scalar))) if held is not None else None
        return None

    def _tuple_of(self, nodes: list[Node | None]) -> Object | None:
        """A tuple of what some nodes hold; None where no type of them is known."""
        return self.objects(Group, "tuple", tuple(node or Node(None) for node in nodes)) if any(nodes) else None

    def declared_node(self, unit: Unit, annotation: str, depth: int = 0) -> Node | None:
        """A node that holds an object of a declared type; None where the type is not known."""
        key = (unit, annotation)
        if key not in self._declared_nodes:
            node = Node(None)
            self._declared_nodes[key] = node if self.declared(unit, annotation, node, depth + 1) else None
        return self._declared_nodes[key]

    def of_type(self, name: ExternalName) -> Object | None:
        """An unknown object of a library's type, or a scalar of Python's own types."""
        if name.name in _SCALARS:
            return self.scalar
        row = self.models.type_named(name.name)
        if row is None:
            return None
        if row.kind == "buffer":
            return self.objects(Memory, row.space, row.memory, row.base or row.name, "literal" if row.space == "device" else "none")
        if row.kind == "device":
            return self.objects(DeviceValue, "unknown")
        return self.objects(LibraryObject, row.name, row.kind)
