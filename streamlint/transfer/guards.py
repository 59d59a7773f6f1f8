"""What branches have asked of a register before an instruction runs: whether it is on the host or on a device, and whether it is pinned."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import islice

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, unnegated
from streamlint.facts.code.objects import Constant, External, Memory
from streamlint.facts.graph.absent import truth_on_cuda
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.models.traits import Trait
from streamlint.models.vocabulary import Selector
from streamlint.transfer.contexts import Contexts, Known
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.transfer import Transfer
from streamlint.waits.entered import Context, entered_by
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import EQUAL, alike, conditions
from streamlint.waits.tested import are_of_host

_OTHER = {"device": "host", "host": "device", "pinned": "", "": ""}
_NAMES = {"cuda": "device", "cpu": "host"}
_CASES = frozenset({"lower", "upper", "strip"})
_ARRAYS: tuple[tuple[str, Trait], ...] = (("host", "host-arrays"), ("device", "device-arrays"))
_INTERFACE = "__cuda_array_interface__"


class Guards:
    """Branches that decide whether a block runs."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.contexts = transfer.one_of(Contexts, transfer)
        self._asking: set[Function] = set()  # functions of the program that are being looked at for what they ask
        self._asked: dict[tuple[Function, int], tuple[int, str]] = {}
        self._excluded: dict[tuple[Function, int, Context], bool] = {}

    def at(self, function: Function, one: Instruction, register: int) -> frozenset[str]:
        """What holds of a register at an instruction: ``host``, ``device``, ``pinned``."""
        return self.at_end(function, function.blocks[one], register)

    def at_end(self, function: Function, block: int, register: int) -> frozenset[str]:
        """What holds of a register in a block."""
        same = {alike(function, each) for each in self._same(function, register)}
        found = set()
        for condition, holds in conditions(function, block):
            asked, says = self._asks(function, condition)
            if says and asked >= 0 and alike(function, asked) in same:
                found.add(says if holds else _OTHER[says])
        return frozenset(found - {""})

    def on_edge(self, function: Function, block: int, phi: Instruction, register: int) -> frozenset[str]:
        """What holds of a register where a block leads to the one of an instruction that joins values."""
        said, end = self.at_end(function, block, register), function.code.blocks[block][-1]
        if end[0] != op.BRANCH or end[3] == end[4]:
            return said
        condition, turned = unnegated(function, end[2])
        holds = (function.blocks[phi] == end[3]) != turned
        return said | {self.says(function, condition, holds, frozenset(self._same(function, register)))} - {""}

    def says(self, function: Function, condition: int, holds: bool, registers: frozenset[int]) -> str:
        """Where a condition says that what some registers hold is, if it comes out so: ``host``, ``device``, or nothing."""
        asked, says = self._asks(function, condition)
        return (says if holds else _OTHER[says]) if asked in registers and says in ("host", "device") else ""

    def is_pinning_asked(self, function: Function, register: int) -> bool:
        """Whether a function asks if memory is pinned that it copies all the same: it knows what it does."""

        def whole(one: Instruction) -> Iterable[int]:
            return op.reads(one) if one[0] in (op.PHI, op.COPY) else one[3:4] if one[0] == op.INVOKE else ()

        held = (one[2] for one in islice(behind(function, [register], whole), 40))
        asked = (use for each in held for use in function.uses[each] if use[0] == op.INVOKE and use[3] == each)
        return any(function.text(use[4]) == "is_pinned" for use in asked)

    def asks_for_tensor(self, function: Function, condition: int) -> int:
        """The register of which a condition asks whether it holds a tensor; NONE where it asks for something else."""
        one = function.definitions[condition] if condition >= 0 else None
        if one is None or one[0] != op.CALL or function.dotted(one[3]) != "isinstance" or len(one) != 7:
            return op.NONE
        meant = [value for value in self.transfer.values(function, one[6]) if isinstance(value, External)]
        return one[5] if any(value.name == "torch.Tensor" for value in meant) else op.NONE

    def _same(self, function: Function, register: int) -> set[int]:
        """A register, and what it is a copy, an attribute or a part of: what is asked of an array is so of its data."""

        def whole(one: Instruction) -> Iterable[int]:
            return one[-1:] if one[0] in (op.COPY, op.CAST) else one[3:4] if one[0] in (op.ATTR, op.ITEM) else ()

        return {one[2] for one in islice(behind(function, [register], whole), 20)}

    def _asks(self, function: Function, condition: int) -> tuple[int, str]:
        """The register whose kind a condition asks for, and what it is where the condition holds."""
        key = (function, condition)
        found = self._asked.get(key)
        if found is None:
            found = self._find_asked(function, condition)
            if not self._asking:  # what is being looked at answers nothing yet
                self._asked[key] = found
        return found

    def _find_asked(self, function: Function, condition: int) -> tuple[int, str]:
        one = function.definitions[condition] if condition >= 0 else None
        if one is None:
            return op.NONE, ""
        if one[0] == op.ATTR and (shown := self.transfer.shows.get(function.text(one[4]))) is not None:
            return one[3], shown
        if one[0] == op.INVOKE and function.text(one[4]) == "is_pinned":
            return one[3], "pinned"
        if one[0] == op.COMPARE:
            return self._asks_by_comparison(function, one)
        return self._asks_by_call(function, one) if one[0] in (op.CALL, op.INVOKE) and not function.is_cpp else (op.NONE, "")

    def _asks_by_comparison(self, function: Function, one: Instruction) -> tuple[int, str]:
        """The same of a comparison: of the library of an array, or of the type of its device."""
        operator, word = function.text(one[3]), function.constant(one[5])
        asked, says = self._array_asked(function, one[4]), ""
        if asked != op.NONE and operator in EQUAL:
            names = [getattr(value, "name", "") for value in self.transfer.values(function, one[5])]
            says = next((space for name in names for space, trait in _ARRAYS if name in function.unit.models.marked(trait)), "")
        elif operator in ("==", "!=") and isinstance(word, str) and word in _NAMES:
            asked = _attribute_of(function, _attribute_of(function, one[4], "type"), "device")
            says = _NAMES[word] if asked != op.NONE else ""
        else:
            return op.NONE, ""
        return asked, says if EQUAL[operator] else _OTHER[says]

    def _asks_by_call(self, function: Function, one: Instruction) -> tuple[int, str]:
        """The same of a call: of the language, of a library, or of a function of the program that asks one of these for its argument."""
        given = operands_of(function, one, receiver=False)
        if one[0] == op.CALL and function.dotted(one[3]) == "hasattr" and len(given) == 2:
            name = function.constant(given[1])
            return (given[0], "device") if name == _INTERFACE or name in self._fetching else (op.NONE, "")
        if one[0] == op.CALL and function.dotted(one[3]) == "isinstance" and len(given) == 2:
            return (given[0], "device") if self._is_device_type(function, given[1]) else (op.NONE, "")
        shown = next((str(call.row.get("shows")) for call in self.transfer.modelled(function, one) if call.row.get("shows")), "")
        if shown and given:
            return given[0], shown
        edges = self.transfer.edges(function, one)
        if len(edges) != 1 or not edges[0].is_followed or edges[0].callee in self._asking:
            return op.NONE, ""
        return self._asks_by_callee(function, one, edges[0].callee)

    def _asks_by_callee(self, function: Function, one: Instruction, callee: Function) -> tuple[int, str]:
        self._asking.add(callee)
        ends = {self._asks(callee, end[2]) for end in callee.by_opcode[op.RETURN] if not self._is_never(callee, end)}
        self._asking.discard(callee)
        asked, says = ends.pop() if len(ends) == 1 else (op.NONE, "")
        parameter = callee.definitions[asked] if asked >= 0 else None
        if parameter is None or parameter[0] != op.PARAM:
            return op.NONE, ""
        register = operand_of(function, one, callee, parameter[3])
        return (register, says) if register is not None else (op.NONE, "")

    def _is_device_type(self, function: Function, register: int) -> bool:
        """Whether a register holds the type of arrays that a library keeps on a device."""
        names = [getattr(value, "name", "") for value in self.transfer.values(function, register)]
        modules = function.unit.models.marked("device-arrays")
        return bool(names) and all(name.rpartition(".")[0] in modules for name in names)

    def asks_for_type(self, function: Function, condition: int) -> tuple[int, str]:
        """The register of which a condition asks whether it is of a type whose objects are on the host."""
        one = function.definitions[condition] if condition >= 0 else None
        if one is None or one[0] != op.CALL or len(one) != 7 or function.dotted(one[3]) != "isinstance":
            return op.NONE, ""
        return (one[5], "host") if are_of_host(self.transfer.facts, function, one[6]) else (op.NONE, "")

    def is_no_host_type(self, function: Function, block: int, register: int) -> bool:
        """Whether a value was found to be of no type whose objects are on the host, before a block ends."""
        same = self._same(function, register)
        return any(not holds and self.asks_for_type(function, condition)[0] in same for condition, holds in conditions(function, block))

    def _is_never(self, function: Function, end: Instruction) -> bool:
        """Whether a function only ends so where something is there that CUDA does not have."""
        ways = conditions(function, function.blocks[end])
        return any(truth_on_cuda(self.transfer.facts, function, condition) is (not holds) for condition, holds in ways)

    def _array_asked(self, function: Function, register: int) -> int:
        """The array whose library a register holds, as CuPy tells it."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] not in (op.CALL, op.INVOKE) or self._of_arrays.isdisjoint(function.called_names):
            return op.NONE
        given = operands_of(function, one, receiver=False)
        is_asked = any(call.row is not None and call.row.get("library_of") for call in self.transfer.libraries(function, one))
        return given[0] if is_asked and len(given) == 1 else op.NONE

    @cached_property
    def _fetching(self) -> frozenset[str]:
        """The names of methods that fetch an array, and that arrays of a device alone have."""
        return self.transfer.names({"transfer"}, _fetches_itself)

    @cached_property
    def _of_arrays(self) -> frozenset[str]:
        """The names of functions that tell the library of an array."""
        return self.transfer.names({"unknown"}, _tells_library)

    def excluded(self, function: Function, block: int, context: Context) -> bool:
        """Whether a block is not reached in a context: a flag that a call gives decides against it."""
        if entered_by(context, function) is None:
            return False
        key = (function, block, context)
        found = self._excluded.get(key)
        if found is None:
            ways = conditions(function, block)
            found = self._excluded[key] = any(self._is_decided(Known(function, condition, context), not holds) for condition, holds in ways)
        return found

    def _is_decided(self, known: Known, holds: bool) -> bool:
        """Whether what calls give decides that a condition has a truth: a flag, a word that is compared, or where an array is."""
        function = known.function
        asked, says = self._asks(function, known.register)
        if not says:
            asked, says = self.asks_for_type(function, known.register)
        if says in ("host", "device"):
            values = list(self.contexts.values(known._replace(register=asked)))
            spaces = {value.space if isinstance(value, Memory) else "" for value in values}
            return len(spaces) == 1 and spaces <= {"host", "device"} and (spaces == {says}) == holds
        one = function.definitions[known.register] if known.register >= 0 else None
        operator = function.text(one[3]) if one is not None and one[0] == op.COMPARE and not function.is_cpp else ""
        if one is not None and operator in EQUAL:
            return self._is_equality_decided(known, one, EQUAL[operator] == holds)
        constants, is_given = self._given_constants(known)
        return is_given and {bool(each) for each in constants} == {holds}

    def _is_equality_decided(self, known: Known, one: Instruction, equal: bool) -> bool:
        """Whether what calls give decides that the sides of a comparison are equal, or that they are not."""
        (left, is_left_given), (right, is_right_given) = (self._given_constants(known._replace(register=each)) for each in one[4:6])
        return (is_left_given or is_right_given) and len(left) == len(right) == 1 and (left == right) == equal

    def _given_constants(self, known: Known) -> tuple[list[object], bool]:
        """The constants that a register holds, none where it may hold something else; and whether it is a call that gives them."""
        given = self.contexts.traced(known)
        one = self.contexts.definition(given)
        if one is not None and one[0] == op.INVOKE and len(one) == 6 and given.function.text(one[4]) in _CASES:
            inner, is_given = self._given_constants(given._replace(register=one[3]))
            name = given.function.text(one[4])
            return [getattr(each, name)() for each in inner if isinstance(each, str)], is_given
        values = list(self.contexts.values(given))
        constants = [value.value for value in values if isinstance(value, Constant)]
        return constants if len(constants) == len(values) else [], given.function is not known.function


def _attribute_of(function: Function, register: int, name: str) -> int:
    """The register of whose value another holds the attribute of a name; NONE where it holds something else."""
    one = function.definitions[register] if register >= 0 else None
    return one[3] if one is not None and one[0] == op.ATTR and function.text(one[4]) == name else op.NONE


def _tells_library(row: Row) -> bool:
    return row.get("library_of") is not None


def _fetches_itself(row: Row) -> bool:
    """Whether a call with a row brings its own receiver to the host: no tensor of PyTorch, which may be there."""
    of = row.get("of")
    return row.get("to") == "host" and row.library != "torch" and isinstance(of, Selector) and of.kind == "self"
