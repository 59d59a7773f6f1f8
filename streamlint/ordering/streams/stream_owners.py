"""Of which object a stream is that the object's own constructor has made: two objects of one class have two streams of one origin. So have
two calls of a function that makes a stream."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import COPIES, behind
from streamlint.facts.code.objects import ClassObject, Instance, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.on_path import as_passed
from streamlint.ordering.paths.walk_names import WalkNames
from streamlint.ordering.places.places import Place, cell_of, is_own_cell
from streamlint.ordering.places.rotation import gone_through
from streamlint.transfer.carried import Carried, Carriers
from streamlint.transfer.transfer import Transfer

Owner = Site | tuple[ClassInfo, str]
"""The instruction that makes an object, or the one member of a class that holds it; the call of a function that makes a stream."""
_DEEPEST = 4
"""Methods that call one another, from the constructor on."""
_MAKING = (op.CALL, op.CONSTRUCT, op.DECLARE, op.NEW)
_SAME = {opcode: slice(place, place + 1) for opcode, place in COPIES.items()} | {op.PHI: slice(3, None)}
"""By opcode of what gives a value another name: the operands."""
_KEEPING = (op.SET_NAME, op.SET_ATTR, op.SET_ITEM, op.APPEND, op.SET_DEREF, op.YIELD)


class StreamOwners:
    """Finds the owners of streams."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self._names: WalkNames = transfer.one_of(WalkNames, transfer)
        self._carriers = transfer.one_of(Carriers, transfer)

    def of(self, frame: Frame, register: int, places: Iterable[Place], made: frozenset[Site]) -> Owner | None:
        """The object whose member a stream is, by the places that a frame has for it, or the call that has made it; None where that cannot
        be told."""
        makers = {site.function for site in made}
        places = [place for place in places if place.path]
        if len(makers) != 1:
            return None
        if len(made) == 1 and (member := self._by_address(next(iter(made)), places)) is not None:
            return member
        if (kind := self._constructed_by(next(iter(makers)))) is None:
            return self._by_call(frame, register, made)
        found = {self._owner(frame, place, kind) for place in places} - {None}
        return found.pop() if len(found) == 1 else None

    def _by_address(self, made: Site, places: Iterable[Place]) -> Owner | None:
        """C++: the one of several members into which a loop over their addresses makes streams: ``for (auto* s : {&a_, &b_}) make(s)``."""
        function = made.function
        for register in op.reads(made.instruction) if function.is_cpp and function.owner is not None else ():
            held = gone_through(function, register) if register >= 0 else op.NONE
            built = function.definitions[held] if held >= 0 else None
            given = [function.definitions[each] for each in built[4:]] if built is not None and built[0] == op.BUILD else []
            names = {function.text(one[3]) for one in given if one is not None and one[0] == op.ADDRESS_NAME}
            found = {str(place.path[-1]) for place in places} & names
            if len(found) == 1 and len(names) > 1 and function.owner is not None:
                return function.owner, found.pop()
        return None

    def _by_call(self, frame: Frame, register: int, made: frozenset[Site]) -> Owner | None:
        """The call of the function that has made a stream, where that gives back a new one each time."""
        holder, held = as_passed(self.transfer, frame, register)
        calls = {self._call_for(source, made) for source in self._carriers.sources(holder.function, held)}
        return calls.pop() if len(calls) == 1 else None

    def _call_for(self, source: Carried, made: frozenset[Site]) -> Site | None:
        """The call that gives back what was made for it alone, of a source of a stream."""
        function = source.function
        onward = partial(_same, function)
        first = [one for one in behind(function, [source.register], onward) if not onward(one)]
        if len(first) != 1:
            return None
        one = first[0]
        if Site(function, one) in made:
            return dict(source.context).get(function) if self._is_given_back(function) else None
        makers = {site.function for site in made}
        entered = {edge.callee for edge in self.transfer.edges(function, one)} if one[0] in (op.CALL, op.INVOKE) else set()
        return Site(function, one) if entered and entered <= makers and all(map(self._is_given_back, entered)) else None

    def _is_given_back(self, function: Function) -> bool:
        """Whether a function keeps nothing of what it makes: it sets no name, attribute or element, and asks none that is kept."""
        if function.code.decorators or function.code.statics or any(function.by_opcode[opcode] for opcode in _KEEPING):
            return False
        return all(is_own_cell(cell_of(function, one[2]).root, function) for one in function.by_opcode[op.STORE])

    def _owner(self, frame: Frame, place: Place, kind: ClassInfo) -> Owner | None:
        frame, place = self._outermost(frame, place)
        (root, path), function = place, frame.function
        if root[0] == "register" and len(path) == 1:
            one = function.definitions[int(str(root[1]))]
            return Site(function, one) if one is not None and self._makes(function, one, kind) else None
        if root == ("parameter", 0) and len(path) == 2 and function.has_receiver and function.owner is not None:
            return self._of_member(function.owner, str(path[0]), kind)
        return None

    def _outermost(self, frame: Frame, place: Place) -> tuple[Frame, Place]:
        """The first frame that has a name for what a place begins with, and the place there."""
        while place.root[0] == "parameter" and frame.caller is not None and frame.call is not None:
            sources = self._names.sources(frame.caller.function, frame.call, frame.function, int(str(place.root[1])))
            if not sources:
                break
            frame, place = frame.caller, sources[-1].behind(*place.path)
        return frame, place

    def _makes(self, function: Function, one: Instruction, kind: ClassInfo) -> bool:
        """Whether an instruction makes an object whose constructors run that of a class: not a copy of another object."""
        if one[0] not in _MAKING or not op.DEFINES[one[0]]:
            return False
        if one[0] == op.CALL and not any(isinstance(value, ClassObject) for value in self.transfer.values(function, one[3])):
            return False
        given = (value for register in op.reads(one) if register >= 0 for value in self.transfer.values(function, register))
        is_copy = any(isinstance(value, Instance) and self._is_one(value.definition, kind) for value in given)
        owners = [value for value in self.transfer.values(function, one[2]) if isinstance(value, Instance)]
        return not is_copy and bool(owners) and all(self._is_one(value.definition, kind) for value in owners)

    def _is_one(self, definition: ClassInfo, kind: ClassInfo) -> bool:
        return kind in self.transfer.facts.hierarchy.order(definition)

    def _of_member(self, owner: ClassInfo, name: str, kind: ClassInfo) -> Owner | None:
        """The object that a member is in C++, or the new one that is all that it is assigned."""
        if owner.unit.is_cpp:
            declared = next((field.type for field in owner.ir.fields if field.name == name), None)
            return (owner, name) if declared is not None and not declared[2] else None
        stores = owner.own_stores.get(name, ())
        if len(stores) != 1 or stores[0].value < 0:
            return None
        function, one = stores[0].function, stores[0].function.definitions[stores[0].value]
        return Site(function, one) if one is not None and self._makes(function, one, kind) else None

    def _constructed_by(self, function: Function, depth: int = _DEEPEST) -> ClassInfo | None:
        """The class whose constructor a function is, or a method that constructors of that class alone call on their object."""
        method = function.method
        if method is None or method.owner is None or not depth:
            return None
        if method.code.name == "__init__":
            return method.owner
        calls = self.transfer.callers(function) if function.has_receiver else []
        own = [caller for caller, call in calls if call[0] == op.INVOKE and caller.has_receiver and caller.is_parameter(call[3], 0)]
        found = {self._constructed_by(caller, depth - 1) for caller in own}
        return found.pop() if len(found) == 1 and len(own) == len(calls) else None


def _same(function: Function, one: Instruction) -> tuple[int, ...]:
    """The registers whose value an instruction gives another name; of a smart pointer, what it holds."""
    if function.is_cpp and one[0] == op.INVOKE and function.invokes(one, "address"):
        return one[3:4]
    registers: tuple[int, ...] = one[_SAME.get(one[0], slice(0))]
    return registers
