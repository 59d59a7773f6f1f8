"""What functions of libraries and of the language give back, from their model rows: the kind of memory, devices, streams, containers."""

from __future__ import annotations

from collections.abc import Callable

from streamlint.facts.code.objects import (
    External,
    Group,
    Instance,
    LibraryObject,
    Memory,
    Object,
    Site,
    Unknown,
)
from streamlint.facts.values.frames import Arguments
from streamlint.facts.values.library_effects import LibraryEffects
from streamlint.facts.values.nodes import Node
from streamlint.models import Row

Effect = Callable[["Library", Row, "Object | None", Arguments, Node], None]


class Library(LibraryEffects):
    """Value flow through libraries."""

    def language_call(self, callee: External, arguments: Arguments, target: Node) -> bool:
        """Call a function of the language; false if it is none."""
        raise NotImplementedError

    def library_call(self, callee: External, arguments: Arguments, target: Node) -> None:
        if not self.language_call(callee, arguments, target):
            self._by_row(self.row_of(callee), callee, arguments, target)

    def _by_row(self, row: Row | None, callee: External, arguments: Arguments, target: Node) -> None:
        if row is None:
            kind = self.models.type_named(callee.name)
            if kind is not None and kind.kind != "buffer":
                self.solver.add(target, self.objects(LibraryObject, kind.name, kind.kind, ""))
            else:
                self.unknown_call("external", arguments, target)
            return
        effect = EFFECTS.get(row.effect)
        if effect is not None:
            made = target
            if row.gives_pair:
                made = Node(None, arguments.site)
                self.solver.add(target, self.objects(Group, "tuple", (self.holding(self.scalar), made)), None, arguments.site)
            effect(self, row, callee.receiver, arguments, made)
        else:
            self.solver.add(target, self.objects(External, "builtins.identity") if row.get("decorates") else self.scalar)

    def library_object_call(self, callee: Object, arguments: Arguments, target: Node) -> None:
        """A module computes on what it is given; a scope that decorates a function gives it back."""
        kind = callee.kind if isinstance(callee, LibraryObject) else ""
        if kind == "scope":
            self.unknown_call("external", arguments, target)
            return
        name = f"{callee.type}.__call__" if isinstance(callee, LibraryObject) and kind == "object" else ""
        row = self.models.calls.get(name) if name else None
        if row is not None and row.effect == "call":
            self.called_now(row, callee, arguments, target)
            return
        for node in arguments.all:
            self.solver.when(node, lambda value: self._computed_by_module(value, target))
        if kind != "module":
            self.unknown(target, "external")

    def _computed_by_module(self, value: Object, target: Node) -> None:
        if isinstance(value, Memory):
            self.solver.add(target, self.computed(value))
        elif isinstance(value, (Unknown, Instance)):
            self.unknown(target, "external")

    # --- members of library objects

    def member(self, value: Object, name: str, target: Node, site: Site | None) -> None:
        row = self.models.attribute(f"{value.name}.{name}") if isinstance(value, External) and value.receiver is None else None
        if row is not None and row.effect == "stream_of":
            self._stream(row, None, self.no_arguments(site), target)
        else:
            super().member(value, name, target, site)

    def _device_type(self, name: str) -> str:
        """The type of devices that has a method, or an attribute: each library has one of its own."""
        kinds = (row.name for row in self.models.types.values() if row.kind == "device")
        known = (self.models.calls, self.models.attributes)
        return next((kind for kind in kinds if any(f"{kind}.{name}" in names for names in known)), "torch.device")

    def library_member(self, value: Object, name: str, target: Node) -> None:
        kind = value.type if isinstance(value, (Memory, LibraryObject)) else self._device_type(name)
        row = self.models.member(kind, name)
        if isinstance(value, Memory) and self.models.part_type(kind, name) is not None:
            self.element(value, None, target, target.site)
        elif row is not None:
            effect = EFFECTS.get(row.effect)
            if effect is not None:
                effect(self, row, value, self.no_arguments(target.site), target)
            else:
                self.solver.add(target, self.scalar)
        elif self.models.method(kind, name) is not None:
            self.solver.add(target, self.objects(External, f"{kind}.{name}", value))
        elif (stands := self.models.calls.get(kind)) is not None and stands.effect == "facade":
            self.member(self.objects(External, str(stands.get("module")), None), name, target, target.site)
        else:
            self.unknown(target, "external")


EFFECTS: dict[str, Effect] = {
    "pipe": Library._pipe,
    "extension": Library._extension,
    "pinned_options": Library._pinned_options,
    "factory": Library._factory,
    "load": Library._opaque,
    "view": Library._view,
    "compute": Library._compute,
    "copy": Library._copy,
    "transfer": Library._transfer,
    "pin": Library._pin,
    "alloc": Library._alloc,
    "stream": Library._stream,
    "stream_of": Library._stream,
    "event": Library._stream,
    "record": Library._record,
    "scope": Library._scope,
    "namespace": Library._namespace,
    "object": Library._object,
    "facade": Library._object,
    "pool": Library._object,
    "loader": Library._loader,
    "prepare": Library._prepare,
    "module_to": Library._same,
    "same": Library._same,
    "move": Library._same,
    "device": Library._device,
    "collective": Library._collective,
    "communicator": Library._communicator,
    "symmetric": Library._symmetric,
    "thread": Library.started,
    "call": Library.called_now,
    "block": Library.waited_for,
    "callback": Library.started,
    "unknown": Library._opaque,
    "get": Library._opaque,
}
"""By effect of a row; others give nothing but scalars."""
