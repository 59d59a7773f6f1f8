"""Where memory is on a chain of calls: on the host, on a CUDA device, or nobody knows."""

from __future__ import annotations

from streamlint.facts.cpp_templates import Meant
from streamlint.facts.functions import Function
from streamlint.facts.objects import DeviceValue, Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.ordering.choice import behind_copies
from streamlint.ordering.decided import Decided, Link, stores_of
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import conditions

_WORDS = {"cuda-device": "device", "cpu-device": "host"}
"""Where memory is that constants of devices name."""
_MOVES = frozenset({"copy", "transfer", "factory", "device"})
_DEEPEST = 12


class Spaces(Decided):
    """Decides, too, what is asked of devices: of tensors and devices that a chain of calls hands over, and of what it has asserted."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.asking = self.facts.cpp_models.gathered(_asking)
        self._asserting = self.facts.cpp_models.gathered(_asserting)
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
            is_one = len(edges) == 1 and not edges[0].is_handed and len(ends) == 1 and ends[0][2] >= 0
            return self.space(Link(callee, Site(function, one), link), ends[0][2], depth + 1) if is_one else ""
        calls = list(self.transfer.modelled(function, one))
        for call in calls:
            given = call.one("from") if call.row.effect == "device" else None
            if given is not None:
                return self.space(link, given, depth + 1)
        is_beside = one[0] == op.INVOKE and not any(call.row.effect in _MOVES for call in calls)
        return self.space(link, one[3], depth + 1) if is_beside else ""

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
            sign, space = link.function.text(one[3]), _WORDS.get(str(word), "")
            if other is None and space and sign in ("==", "!=") and (held := self.space(link, register)):
                return Meant("value", (held == space) == (sign == "=="))
        return super().compared(link, one, left, right)

    def _asserted_of(self, function: Function, register: int) -> str:
        """What a function asserts of a value before it goes on."""
        if function not in self._asserted:
            self._asserted[function] = self._assertions(function) if function.is_cpp else {}
        return self._asserted[function].get(_place(function, register), "")

    def _is_assertion(self, function: Function, one: Instruction) -> bool:
        """Whether a call is one of a macro or function that asserts its argument."""
        called = function.definitions[one[3]] if len(one) > 5 else None
        return called is not None and called[0] == op.NAME and function.text(called[3]) in self._asserting

    def _assertions(self, function: Function) -> dict[object, str]:
        """What it asserts on each way: not what one arm asserts, nor a place that is said to be both, or is set again."""
        found: dict[object, str] = {}
        both: set[object] = set()
        for one in function.by_opcode[op.CALL]:
            if not self._is_assertion(function, one) or any(True for _ in conditions(function, function.blocks[one])):
                continue
            asked = function.definitions[one[5]] if one[5] >= 0 else None
            shows = self.asking.get(function.text(asked[4])) if asked is not None and asked[0] == op.INVOKE else None
            if asked is not None and shows is not None:
                place, space = _place(function, self._behind_device(function, asked[3])), "device" if shows else "host"
                if found.setdefault(place, space) != space or _is_set(function, place):
                    both.add(place)
        return {place: space for place, space in found.items() if place not in both}

    def _behind_device(self, function: Function, register: int) -> int:
        """A tensor behind ``x.device()``."""
        one = function.definitions[register] if register >= 0 else None
        calls = self.transfer.modelled(function, one) if one is not None and one[0] == op.INVOKE else ()
        is_device = any(call.row.effect == "device" and call.one("from") == one[3] for call in calls if one is not None)
        return one[3] if is_device and one is not None else register


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


def _asking(models: Models) -> dict[str, bool]:
    """By the last parts of their names: what asks where memory is, and whether for a device."""
    return {name.rpartition("::")[2]: row.get("shows") == "device" for name, row in models.calls.items() if row.get("shows")}


def _asserting(models: Models) -> frozenset[str]:
    return frozenset(name for name, row in models.calls.items() if row.get("asserts"))
