"""Classes that drive devices which are no CUDA devices: beside one that drives those, a program on CUDA has no object of them."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo
from streamlint.facts.files.scopes import ExternalName, Scopes
from streamlint.facts.graph.call_graph import Edge
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.support.memo import memoized

CUDA, OTHER = "cuda", "other"
_OF_CUDA = "torch.cuda."


class OtherDevices:
    """The devices that the classes of a program drive, by the modules that their methods name (rows with `elsewhere`)."""

    def __init__(self, models: Models, scopes: Scopes) -> None:
        self.models = models
        self.scopes = scopes

    def without(self, edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
        """The functions that a call may enter, but for methods of such classes beside those of one that drives CUDA devices."""
        owners = {edge.callee.owner for edge in edges} - {None}
        if len(owners) < 2 or any(edge.callee.is_cpp for edge in edges):
            return edges
        others = {owner for owner in owners if owner is not None and self.driven(owner) == {OTHER}}
        if not others or not any(owner is not None and CUDA in self.driven(owner) for owner in owners):
            return edges
        return tuple(edge for edge in edges if edge.callee.owner not in others)

    @memoized
    def driven(self, definition: ClassInfo) -> frozenset[str]:
        """What kinds of devices the methods of a class name."""
        return frozenset(self._named(definition))

    def _named(self, definition: ClassInfo) -> Iterator[str]:
        for function in (method for methods in definition.methods.values() for method in methods):
            read = [(one[3], one[4]) for opcode in (op.ATTR, op.INVOKE) for one in function.by_opcode[opcode]]
            for name in dict.fromkeys(f"{function.dotted(register)}.{function.text(member)}" for register, member in read):
                for meant in self.scopes.find(function.unit, name):
                    if isinstance(meant, ExternalName) and meant.name.startswith(_OF_CUDA):
                        yield CUDA
                    elif isinstance(meant, ExternalName) and (row := self.models.call(meant.name)) is not None and row.get("elsewhere"):
                        yield OTHER
