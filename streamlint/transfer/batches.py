"""Batches of a loader that are objects of a class: a loader pins tensors, containers of them, and what has a ``pin_memory`` of its own."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import BoundMethod, ClassObject, FunctionObject, Instance, LibraryObject, Site, Unknown, without_partials
from streamlint.facts.values.nodes import Node
from streamlint.ir import opcodes as op
from streamlint.transfer.contexts import Known
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers

_DEEPEST = 5
_NAMING = frozenset({op.BIND, op.UNBIND})


def _filled(method: Function) -> Iterator[str]:
    """The attributes of the receiver into whose values a method puts elements."""
    for put in method.by_opcode[op.SET_ITEM]:
        one = method.definitions[put[2]] if put[2] >= 0 else None
        if one is not None and one[0] == op.ATTR and method.is_parameter(one[3]):
            yield method.text(one[4])


class Batches:
    """Finds what the fields of batches hold."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts

    def field(self, batch: Known, name: str) -> Known | None:
        """The register that an attribute of a batch was given; None where it is no batch, or one that is pinned."""
        loader = self._loader(batch.function, batch.register)
        collate = loader.one("collate") if loader is not None else None
        if loader is None or collate is None:
            return None
        for definition in self._classes(loader, collate):
            return None if self._is_pinned(definition) else self._given(None, definition, name)
        for function in self._functions(loader, collate):
            for end in function.by_opcode[op.RETURN]:
                node = self.facts.values(function, end[2]) if end[2] >= 0 else None
                for value in list(node.values) if node is not None else ():
                    if node is not None and isinstance(value, Instance) and not self._is_pinned(value.definition):
                        return self._given(self._made(node, value), value.definition, name)
        return None

    def is_pinned(self, batch: Known, name: str) -> bool:
        """Whether a loader that pins has made a batch of a class that pins that field by itself."""
        loader = self._loader(batch.function, batch.register)
        collate = loader.one("collate") if loader is not None else None
        if loader is None or collate is None or loader.switch("pin")[1] is False:
            return False
        ends = [(each, end[2]) for each in self._functions(loader, collate) for end in each.by_opcode[op.RETURN] if end[2] >= 0]
        held = [value for function, register in ends for value in self.facts.values(function, register).values]
        made = [value for value in held if not isinstance(value, Unknown)]
        classes = [*self._classes(loader, collate), *(value.definition for value in made if isinstance(value, Instance))]
        return bool(classes) and all(isinstance(value, Instance) for value in made) and all(self._pins(each, name) for each in classes)

    def _pins(self, definition: ClassInfo, name: str) -> bool:
        """Whether a class pins a field by itself: all of them, where it sets none of its own when it does, and keeps what it pins."""
        found = self.facts.hierarchy.lookup(definition, "pin_memory")
        own = found[1] if found is not None else []
        stored = {field for field, stores in definition.own_stores.items() if any(store.function in own for store in stores)}
        stored |= {field for method in own for field in _filled(method)}
        return self._is_pinned(definition) and name in (stored or {name}) and (bool(stored) or not all(map(self._drops_pinned, own)))

    def _drops_pinned(self, method: Function) -> bool:
        """Whether a method pins memory, and no instruction uses a pinned copy."""
        every = [(each, one) for each in method.below for one in each.by_opcode[op.INVOKE]]
        pinned = [(each, one[2]) for each, one in every if any(call.row.effect == "pin" for call in self.transfer.modelled(each, one))]
        return bool(pinned) and not any(use[0] not in _NAMING for each, register in pinned for use in each.uses[register])

    def collated(self, site: Site) -> Iterator[Known]:
        """What the batches hold of a loader that a call makes: what its own function returns, or the parts of a display that it returns."""
        loader = self._making(site)
        collate = loader.one("collate") if loader is not None else None
        for function in self._functions(loader, collate) if loader is not None and collate is not None else ():
            for end in function.by_opcode[op.RETURN]:
                made = function.definitions[end[2]] if end[2] >= 0 else None
                is_display = made is not None and made[0] in (op.BUILD, op.DICT)
                held = made[4 :: 1 + (made[0] == op.DICT)] if made is not None and is_display else end[2:3]
                yield from (Known(function, each, ()) for each in held if each >= 0)

    def _is_pinned(self, definition: ClassInfo) -> bool:
        """Whether a loader pins the objects of a class: containers, and what can pin itself."""
        bases = {name.rpartition(".")[2] for name in self.facts.hierarchy.libraries(definition)}
        return bool(bases & self.facts.models.known("collated")) or self.facts.hierarchy.lookup(definition, "pin_memory") is not None

    def _loader(self, function: Function, register: int) -> ModelledCall | None:
        """The call that made the loader which a register is a batch of."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] != op.NEXT:
            return None
        for _ in range(_DEEPEST):
            if one is None or one[0] not in (op.NEXT, op.ITER, op.UNPACK):
                break
            node = self.facts.values(function, one[3])
            loaders = [value for value in node.values if isinstance(value, LibraryObject) and value.kind == "loader"]
            made = (self._making(site) for value in loaders for site in list(node.trace(value)))
            if found := next(filter(None, made), None):
                return found
            one = function.definitions[one[3]] if one[3] >= 0 else None
        return self._making(Site(function, one)) if one is not None and one[0] in (op.CALL, op.INVOKE) else None

    def _making(self, site: Site) -> ModelledCall | None:
        """The call of a library that makes a loader."""
        return next((call for call in self.transfer.modelled(site.function, site.instruction) if call.row.effect == "loader"), None)

    def _classes(self, loader: ModelledCall, collate: int) -> Iterator[ClassInfo]:
        """The classes that collate by themselves: a batch is an object that is made of the samples."""
        yield from (value.definition for value in loader.values(collate) if isinstance(value, ClassObject))

    def _functions(self, loader: ModelledCall, collate: int) -> Iterator[Function]:
        for value in loader.values(collate):
            value = without_partials(value)
            if isinstance(value, BoundMethod):
                yield value.method.function
            elif isinstance(value, FunctionObject):
                yield value.function
            elif isinstance(value, Instance) and (found := self.facts.hierarchy.lookup(value.definition, "__call__")) is not None:
                yield from found[1]

    def _made(self, node: Node, value: Instance) -> Site | None:
        """The call that made an object."""
        sites = [site for site in node.trace(value) if site.instruction[0] == op.CALL]
        return sites[-1] if sites else None

    def _given(self, made: Site | None, definition: ClassInfo, name: str) -> Known | None:
        """What the constructor stores in a field: of a data class the argument of the call."""
        for store in definition.own_stores.get(name, ()):
            callers = (caller for caller, _ in self.facts.call_places(store.function))
            if any(function.code.name == "__init__" for function in (store.function, *callers)):
                return Known(store.function, store.value, ())
        fields = [field.name for field in definition.ir.fields]
        if made is None or name not in fields:
            return None
        function, one = made.function, made.instruction
        given = argument_registers(function, one)
        place = fields.index(name)
        by_name = next((each for kind, each in given if kind == name), None)
        if by_name is None and (place >= len(given) or given[place][0] is not None):
            return None
        return Known(function, by_name if by_name is not None else given[place][1], ())
