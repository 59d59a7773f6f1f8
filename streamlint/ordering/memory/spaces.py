"""Where memory is on a chain of calls: on the host, on a CUDA device, or nobody knows."""

from __future__ import annotations

from streamlint.facts.code.assertions import Assertions
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.facts.code.objects import DeviceValue, Memory, Site
from streamlint.facts.files.cpp_templates import Meant
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import SPACES
from streamlint.ordering.paths.decided import Decided, Link, stores_of
from streamlint.transfer.transfer import Transfer

_MOVES = frozenset({"copy", "transfer", "factory", "device"})
_DEEPEST = 12


class Spaces(Decided):
    """Decides, too, what is asked of devices: of tensors and devices that a chain of calls hands over, and of what it has asserted."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._assertions_of = Assertions(self.facts.cpp_models)
        self.asking = self._assertions_of.names.asking
        self._asserted: dict[Function, dict[object, str]] = {}

    def space(self, link: Link, register: int, depth: int = 0) -> str:
        """``device`` or ``host``; "" where it is not known."""
        if found := self._asserted_of(link.function, register):
            return found
        link, register = self.origin(link, register)
        function = link.function
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth > _DEEPEST or not function.is_cpp:
            return ""
        if found := self._asserted_of(function, register) or self._by_values(function, register):
            return found
        if one[0] == op.REBIND:
            return self.space(link, one[5], depth + 1)
        if one[0] in (op.CALL, op.INVOKE, op.CONSTRUCT):
            return self._of_call(link, one, depth)
        return self.space(link, one[3], depth + 1) if one[0] == op.ITEM else ""

    def _of_call(self, link: Link, one: Instruction, depth: int) -> str:
        """Where the result of a call is: what it names as its device, what the one function gives that it enters, or beside its object."""
        function = link.function
        edges = [edge for edge in self.transfer.edges(function, one) if edge.is_followed]
        if edges:
            callee, ends = edges[0].callee, edges[0].callee.by_opcode[op.RETURN]
            is_one = len(edges) == 1 and not edges[0].is_higher_order and len(ends) == 1 and ends[0][2] >= 0
            return self.space(Link(callee, Site(function, one), link), ends[0][2], depth + 1) if is_one else ""
        calls = list(self.transfer.modelled(function, one))
        for call in calls:
            given = call.one("from") if call.row.effect == "device" else None
            if given is not None:
                return self.space(link, given, depth + 1)
        is_method = one[0] == op.INVOKE and not any(call.row.effect in _MOVES for call in calls)
        return self.space(link, one[3], depth + 1) if is_method else ""

    def _by_values(self, function: Function, register: int) -> str:
        """Where all is that a register may hold, in all calls of the function."""
        values = list(self.facts.values(function, register).values)
        spaces = {value.space for value in values if isinstance(value, (Memory, DeviceValue))}
        is_all = bool(values) and all(isinstance(value, (Memory, DeviceValue)) for value in values)
        found = spaces.pop() if is_all and len(spaces) == 1 else ""
        return found if found in ("device", "host") else ""

    # --- questions and assertions

    def value(self, link: Link, register: int, depth: int = 0) -> Meant | None:
        home, register = self.origin(link, register)
        one = home.function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.INVOKE and home.function.is_cpp and len(one) == 6:
            asks_for_device = self.asking.get(home.function.text(one[4]))
            if asks_for_device is not None:
                space = self.space(home, one[3], depth + 1)
                is_sure = space == "device" or (space == "host" and asks_for_device)
                return Meant("value", (space == "device") == asks_for_device) if is_sure else None
        return super().value(home, register, depth)

    def compared(self, link: Link, one: Instruction, left: Meant | None, right: Meant | None) -> Meant | None:
        for known, other, register in ((left, right, one[5]), (right, left, one[4])):
            word = known.held[0] if known is not None and known.kind == "constant" and isinstance(known.held, tuple) else ""
            sign, space = link.function.text(one[3]), SPACES.get(str(word), "")
            if other is None and space and sign in ("==", "!=") and (held := self.space(link, register)):
                return Meant("value", (held == space) == (sign == "=="))
        return super().compared(link, one, left, right)

    def _asserted_of(self, function: Function, register: int) -> str:
        """What a function asserts of a value before it goes on."""
        if function not in self._asserted:
            self._asserted[function] = self._assertions(function) if function.is_cpp else {}
        return self._asserted[function].get(_place(function, register), "")

    def _assertions(self, function: Function) -> dict[object, str]:
        """By the place of what it asserts: not one that is said to be both, or is set again."""
        found: dict[object, str] = {}
        both: set[object] = set()
        for register, space in self._assertions_of.of(function).items():
            place = _place(function, register)
            if found.setdefault(place, space) != space or _is_set(function, place):
                both.add(place)
        return {place: space for place, space in found.items() if place not in both}


def _is_set(function: Function, place: object) -> bool:
    """Whether a variable that several functions share is set more than once."""
    if not isinstance(place, tuple):
        return False
    _, number = function.unit.ir.constants[place[1]]
    return len(stores_of(function.unit.function(number), place[1])) > 1


def _place(function: Function, register: int) -> object:
    """The variable that a register was read from, if several functions share it; else the register."""
    register = behind_copies(function, register)
    one = function.definitions[register] if register >= 0 else None
    return (op.LOAD, one[3]) if one is not None and one[0] == op.LOAD else register
