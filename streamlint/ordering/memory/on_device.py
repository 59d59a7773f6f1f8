"""What registers hold: memory of a device, by its values, by what made it, or by the stream that works on it; or of the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Container, LibraryObject, Memory, Object, Scalar, Unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized
from streamlint.transfer.actions import Action, Copied, Viewed
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked
from streamlint.waits.operands import operand_of, taken_from

_DEEPEST = 12


class OnDevice:
    """Where the memory of a program is."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.arrays = transfer.facts.models.marked("arrays")
        """Libraries with arrays: what one does with memory of another is the affair of SL027."""
        self._devices: dict[tuple[Function, int], bool] = {}

    def is_on_device(self, function: Function, register: int, work: Worked, in_scope: bool, depth: int = 0) -> bool:
        """Whether what a register holds is memory of a device, by its values, by what made it, or by the stream that works on it."""
        if register < 0:
            return False
        spaces = {
            value.space
            for value in (*self.transfer.values(function, register), *self.held_in(function, register))
            if isinstance(value, Memory)
        }
        if spaces & {"device", "managed"}:
            return True
        if spaces == {"host"}:
            return False
        if function.is_cpp and work.evident:
            one = function.definitions[register]
            return one is None or one[0] != op.CONST
        is_of_library = in_scope and not work.assumed and bool(work.library or self._is_of_arrays(function, work))
        if (work.evident or is_of_library) and self.may_be_memory(function, register):
            return True
        return self._is_made_there(function, register, depth)

    @memoized
    def held_in(self, function: Function, register: int) -> list[Memory]:
        """Python: the memory that is in the lists which a register holds."""
        lists = [] if function.is_cpp else [each for each in self.transfer.values(function, register) if isinstance(each, Container)]
        elements = (each for value in lists if value.kind == "list" for each in self.transfer.facts.elements(value))
        return [each for each in elements if isinstance(each, Memory)]

    def library(self, function: Function, registers: Iterable[int]) -> str:
        """The library of what is done with arrays, by their types; "" where that is open."""
        held = (value for each in registers for value in self.transfer.values(function, each) if isinstance(value, Memory))
        types = {value.type.partition(".")[0] for value in held}
        return types.pop() if len(types) == 1 else ""

    def _is_of_arrays(self, function: Function, work: Worked) -> bool:
        """Whether an operator is given what a library with arrays has computed."""
        definition = ((each, function.definitions[each]) for each in work.reads if each >= 0)
        return any(
            before.made == each and before.library in self.arrays
            for each, one in definition
            for before in (self.transfer.works(function, one) if one is not None else ())
        )

    def _is_made_there(self, function: Function, register: int, depth: int = 0) -> bool:
        key = (function, register)
        known = self._devices.get(key)
        if known is None:
            self._devices[key] = False
            known = self._devices[key] = self._find_made(function, register, depth)
        return known

    def _find_made(self, function: Function, register: int, depth: int) -> bool:
        """Whether the instruction that made a value makes it of memory of a device."""
        if any(isinstance(value, Memory) and value.space == "device" for value in self.transfer.values(function, register)):
            return True
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth > _DEEPEST:
            return False
        if one[0] == op.PHI:
            return any(self._is_made_there(function, each, depth + 1) for each in one[3:])
        if one[0] == op.PARAM:
            return self._is_given_there(function, one[3], depth)
        if self._is_all_there(function, self._elements(function, one), depth):
            return True
        actions = self.transfer.of(function, one)
        return any(_brings(action, register) for action in actions) or any(
            self._is_made_there(function, each, depth + 1) for each in self._made_from(function, register, actions)
        )

    def _is_all_there(self, function: Function, registers: list[int], depth: int) -> bool:
        return bool(registers) and all(self._is_made_there(function, each, depth + 1) for each in registers)

    def _elements(self, function: Function, one: Instruction) -> list[int]:
        """Python: all elements of the list that a function makes by itself, of which an instruction takes one."""
        source = taken_from(function, one) if one[0] in (op.NEXT, op.ITEM, op.UNPACK) and not function.is_cpp else None
        definition = function.definitions[source] if source is not None and source >= 0 else None
        if definition is None or definition[0] != op.BUILD or function.text(definition[3]) not in ("list", "tuple", "set"):
            return []
        return [*definition[4:], *(use[-1] for use in function.uses[definition[2]] if use[0] == op.APPEND and use[2] == definition[2])]

    def _is_given_there(self, function: Function, index: int, depth: int) -> bool:
        """Python: whether all calls in view give memory of a device for a parameter."""
        calls = [] if function.is_cpp else self.transfer.callers(function)
        given = [(caller, operand_of(caller, call, function, index)) for caller, call in calls if call[0] in (op.CALL, op.INVOKE)]
        return 0 < len(given) == len(calls) and all(
            register is not None and self._is_made_there(caller, register, depth + 1) for caller, register in given
        )

    def _made_from(self, function: Function, register: int, actions: Iterable[Action]) -> Iterator[int]:
        """The registers that a value is a view of, or is computed from."""
        yield from (action.register for action in actions if isinstance(action, Viewed))
        one = function.definitions[register]
        works = self.transfer.works(function, one) if one is not None else ()
        yield from (each for work in works if work.made == register for each in work.reads)

    def may_be_memory(self, function: Function, register: int) -> bool:
        """Whether nothing says that a value is a number, text, or an object that is no memory."""
        if register < 0:
            return False
        one = function.definitions[register]
        if one is not None and one[0] == op.CONST:
            return False
        values = list(self.transfer.values(function, register))
        if any(isinstance(value, (Memory, Unknown)) for value in values):
            return True
        return not any(isinstance(value, (Constant, Scalar, LibraryObject)) for value in values)

    def is_on_host(self, function: Function, register: int) -> bool:
        """Whether all that a register may hold is memory of the host."""
        held = [value for value in self.transfer.values(function, register) if isinstance(value, Memory)]
        return bool(held) and all(value.space == "host" for value in held)

    def is_made_on_host(self, function: Function, register: int) -> bool:
        """C++: whether a factory makes memory that no option puts on a device."""
        one = function.definitions[register]
        if not function.is_cpp or one is None or one[0] != op.CALL:
            return False
        held = self.transfer.values(function, register)
        is_there = any(isinstance(value, Memory) and value.space == "device" for value in held)
        return not is_there and any(call.row.effect == "factory" for call in self.transfer.modelled(function, one))

    def may_be_view(self, function: Function, one: Instruction, work: Worked) -> bool:
        """Whether an upload is none where the memory of another library that it is given is on the device already."""
        copies = [each for each in self.transfer.of(function, one) if isinstance(each, Copied) and each.target == work.made]
        held = [value for each in copies for value in self.transfer.values(function, each.source) if isinstance(value, Memory)]
        return any(value.space == "unknown" and value.type.partition(".")[0] in self.arrays - {work.library} for value in held)


def may_be_there(values: list[Object], presumes: bool) -> bool:
    """Whether a read of a value may wait for a device; ``presumes``: a tensor by what is done with it, wherever it is."""
    there = {value.space for value in values if isinstance(value, Memory)}
    is_number = bool(values) and all(isinstance(value, Scalar | Constant) for value in values)
    return not there.isdisjoint({"device", "unknown"}) or (presumes and not there and not is_number and may_be_anything(values))


def may_be_anything(values: list[Object]) -> bool:
    """Whether a value may be anything."""
    return not values or any(isinstance(value, Unknown) for value in values) or not any(isinstance(v, LibraryObject) for v in values)


def _brings(action: Action, register: int) -> bool:
    """Whether an action copies to a device what a register holds then."""
    return isinstance(action, Copied) and action.direction in ("h2d", "d2d") and action.target == register
