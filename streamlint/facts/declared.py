"""Declared types: what an annotation says that a value is, and what a container that it names holds."""

from __future__ import annotations

from streamlint.facts.frames import Frame
from streamlint.facts.functions import ClassInfo
from streamlint.facts.keyed import KeyedFlow
from streamlint.facts.nodes import Node
from streamlint.facts.objects import DeviceValue, Group, Instance, LibraryObject, Memory, Object, SomeClass, Unknown
from streamlint.facts.program import Unit
from streamlint.facts.scopes import ExternalName
from streamlint.ir import opcodes as op

_SCALARS = frozenset({"int", "float", "bool", "str", "bytes", "complex", "builtins.int", "builtins.float", "builtins.bool", "builtins.str"})
_ITERABLES = frozenset(
    "list set frozenset deque List Set FrozenSet Deque Sequence MutableSequence Collection Iterable Iterator Generator AbstractSet"
    " MutableSet AsyncIterable AsyncIterator AsyncGenerator KeysView ValuesView Reversible".split()
)
_MAPPINGS = frozenset("dict Dict Mapping MutableMapping OrderedDict defaultdict DefaultDict ChainMap WeakValueDictionary".split())
_MODULES = ("", "builtins", "typing", "typing_extensions", "collections", "collections.abc", "weakref")
DEEPEST_DECLARED = 3
"""Containers in one another of a declared type."""


class Declared(KeyedFlow):
    """Value flow from annotations."""

    def declared(self, unit: Unit, annotation: str, target: Node, depth: int = 0) -> bool:
        said = False
        for head, inner, one in self.scopes.annotated(unit, annotation) if annotation else ():
            value = self._named_class(head, one) if isinstance(one, ClassInfo) else self.of_type(one)
            if value is None and isinstance(one, ExternalName) and depth < DEEPEST_DECLARED:
                value = self._container_of(unit, one, inner, depth)
            if value is not None:
                self.solver.add(target, value)
                said = True
        return said

    def _join(self, frame: Frame, opcode: int, node: Node) -> None:
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
            nodes = [self.declared_node(unit, each, depth) for each in inner]
            return self.objects(Group, "tuple", tuple(node or Node(None) for node in nodes)) if any(nodes) else None
        if name in ("tuple", "Tuple") or name in _ITERABLES:
            held = self.declared_node(unit, inner[0], depth)
            return self.objects(Group, "iterable", (held,)) if held is not None else None
        if name in _MAPPINGS and len(inner) > 1:
            keys, held = (self.declared_node(unit, each, depth) for each in inner[:2])
            return self.objects(Group, "mapping", (held, keys or self.holding(self.scalar))) if held is not None else None
        return None

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
