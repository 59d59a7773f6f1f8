"""Finds the instructions at which the host waits for the device: by the rows of the libraries' calls, and by what the language does."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import (
    Constant,
    Container,
    External,
    Group,
    Instance,
    LibraryObject,
    Memory,
    Object,
    Scalar,
    Site,
    Unknown,
    are_plain,
)
from streamlint.facts.graph.call_graph import CallGraph, LibraryCall
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.waits.fills import hands_filled, is_shape
from streamlint.waits.indices import is_mask, is_of_numbers, is_uploaded, parts_of
from streamlint.waits.launching import OF_DEVICES, waits_for_device
from streamlint.waits.operands import (
    argument_registers,
    constants_of,
    held_in,
    is_element_type,
    makes_nothing,
    makes_wait,
    selected,
    selectors,
)
from streamlint.waits.origins import INPUT, LOSS, OF_TRAINING, TENSOR, TERM, UNSURE
from streamlint.waits.sinks import is_group_entry, is_text_compared, may_be_absent
from streamlint.waits.tested import is_of_host, runs_without_cuda
from streamlint.waits.together import is_beside_host
from streamlint.waits.wait import CACHE, CAST, DEVICE, FETCH, NUMBER, OF_LIST, READ, SIZE, UPLOAD, Wait

_NUMBERS = frozenset({"float", "int", "bool", "complex", "str", "repr", "print", "format", "max", "min"})
"""Functions of the language that fetch the number of a tensor."""
_OPERATORS = frozenset({op.PHI, op.COPY, op.BINARY, op.INPLACE, op.UNARY, op.COMPARE})
_GIVING = frozenset({"compute", "view", "factory", "transfer", "same"})
_SCATTER = "use x.scatter_(dim, index, number) or x.index_fill_(dim, index, number), which upload nothing"
_COMPUTING = frozenset({"compute", "launch", "collective"})


class WaitFinder:
    """Finds the waits of functions."""

    def __init__(self, graph: CallGraph, all_loops: bool = False) -> None:
        self.graph = graph
        self.all_loops = all_loops
        self.facts = graph.facts

    def waits(self, function: Function) -> list[Wait]:
        """The waits of a function that may be for values of a device, in the order of its instructions."""
        found: dict[tuple[Instruction, str, int], Wait] = {}
        for wait in (*self._calls(function), *(self._operators(function) if not function.is_cpp else ())):
            if wait.what not in (CAST, READ) or not self._is_no_tensor(function, wait):
                found.setdefault((wait.instruction, wait.what, wait.value), wait)
        order = {one: place for place, one in enumerate(function.code.instructions())}
        return sorted(found.values(), key=lambda wait: order[wait.instruction])

    def _is_no_tensor(self, function: Function, wait: Wait) -> bool:
        """Whether a branch has found that a value is none of a device, or it is a number that configures an optimizer's step."""
        is_found = is_of_host(self.facts, function, wait.instruction, wait.value) or is_group_entry(function, wait.value)
        return is_found or runs_without_cuda(function, wait.instruction, wait.value)

    def reads_state(self, wait: Wait) -> bool:
        """Whether a wait reads what an object of a library keeps on the device."""
        calls = self.graph.of_call(wait.function, wait.instruction).libraries if wait.what == READ else ()
        return any(call.row is not None and bool(call.row.get("state")) for call in calls)

    def reasons(self, function: Function, register: int, is_read: bool = False) -> list[str]:
        """Why what a register holds is on a device; where it may also be on the host, only reasons of values that training computes.

        With all loops, of a number that is read (``is_read``) also that somebody puts it on a device: only a tensor is asked so.
        """
        return self._reasons_of(function, register, self.facts.values(function, register).values, is_read)

    def reasons_of_held(self, function: Function, register: int) -> list[str]:
        """The same of what a register holds, or else of its elements: of the parameters that a call is given as one list."""
        held = self.facts.values(function, register).values
        elements = dict.fromkeys(each for value in held if isinstance(value, (Container, Group)) for each in self.facts.elements(value))
        return self.reasons(function, register) or self._reasons_of(function, register, elements, False)

    def _reasons_of(self, function: Function, register: int, held: Collection[Object], is_read: bool) -> list[str]:
        values = [value for value in held if isinstance(value, Memory)]
        found = [value.evidence for value in values if value.space == "device"]
        if found and len(found) < len(values) and is_beside_host(self.graph, function, register):
            return []
        if any(value.space in ("host", "managed") for value in values):
            placed = ("asked", "literal") if is_read and self.all_loops else ()
            is_made = not any(reason in ("asked", "literal") for reason in found)
            found = [reason for reason in found if reason.removeprefix(UNSURE) in OF_TRAINING or reason in placed]
            if is_made and {LOSS, TERM}.issuperset(found) and not any(_is_unknown(function, value) for value in held):
                return []  # all that the loss was computed from was made on the host, and nothing moves it
        return found

    # --- calls

    def _calls(self, function: Function) -> Iterator[Wait]:
        for call in self.graph.calls(function).libraries:
            if call.name in self.facts.models.marked("folds"):
                yield from self._folded(function, call.instruction)
            if call.row is not None:
                yield from self._by_row(function, call, call.row)
            elif not function.is_cpp and (name := call.name.removeprefix("builtins.")) in _NUMBERS:
                for kind, register in argument_registers(function, call.instruction):
                    if kind is None and self.reasons(function, register):
                        yield Wait(function, call.instruction, CAST, name, register)

        for one in self.graph.calls(function).unknown:
            if waits_for_device(self.graph, function, one):
                yield Wait(function, one, DEVICE, OF_DEVICES, op.NONE)

    def _folded(self, function: Function, one: Instruction) -> Iterator[Wait]:
        """``reduce(max, losses)``: each pair is compared."""
        given = [register for kind, register in argument_registers(function, one) if kind is None]
        for value in self.facts.values(function, given[0]).values if len(given) > 1 else ():
            row = self.facts.row_of(value) if isinstance(value, External) else None
            if row is not None and row.get("compares") and isinstance(value, External) and self.reasons(function, one[2]):
                yield Wait(function, one, CAST, value.name, one[2])

    def _is_computed(self, function: Function, register: int) -> bool:
        """Whether a register holds what a function of a library computes or makes: what else unknown code gives may be a list."""
        rows = {call.instruction: call.row for call in self.graph.calls(function).libraries if call.row is not None}
        made = behind(function, [register], lambda one: op.reads(one) if one[0] in _OPERATORS else ())
        return any((row := rows.get(one)) is not None and row.effect in _GIVING and "*" not in row.names[0] for one in made)

    def _by_row(self, function: Function, call: LibraryCall, row: Row) -> Iterator[Wait]:
        one = call.instruction
        is_method = call.receiver is not None
        if row.effect == "read":
            yield from self._read(function, call, row, is_method)
        elif row.effect == "transfer":
            yield from self._transfer(function, call, row, is_method)
        elif row.effect == "view" and row.get("host_access"):
            forced = row.get("fetches")
            is_forced = isinstance(forced, Selector) and self._may_hold(function, one, forced, True, is_method)
            if is_method and is_forced and self.reasons(function, one[3]):
                yield Wait(function, one, READ, call.name, one[3])
        elif row.effect == "factory":
            yield from self._made(function, call, row, is_method)
        elif row.effect == "object":
            yield from self._checked(function, call, row)
        elif row.effect == "synchronize" and row.get("of") == "device":
            yield Wait(function, one, DEVICE, call.name, op.NONE)
        elif row.effect == "trim" and row.library == "torch":
            yield Wait(function, one, CACHE, call.name, op.NONE)
        elif row.effect in _COMPUTING:
            yield from self._computes(function, call, row, is_method)

    def _read(self, function: Function, call: LibraryCall, row: Row, is_method: bool) -> Iterator[Wait]:
        """A call that fetches what it is given; what it puts into words or hands to a log may be anything, also a container of tensors."""
        one = call.instruction
        if row.get("state") and is_method:
            yield Wait(function, one, READ, call.name, one[3])
            return
        for selector in selectors(row, "of"):
            if selector.kind == "all" or row.get("shows"):
                given = [register for _, register in argument_registers(function, one)]
                named = given if selector.kind == "all" else [selected(function, one, selector, is_method)]
                shown = [each for register in named if register is not None for each in held_in(function, register)]
                yield from (Wait(function, one, CAST, call.name, each) for each in shown if self._is_shown(function, each))
                continue
            register = selected(function, one, selector, is_method)
            is_read = call.name.endswith(("item", "tolist"))
            if register is not None and self.reasons(function, register, is_read):
                yield Wait(function, one, READ if is_read else CAST, call.name, register)

    def _transfer(self, function: Function, call: LibraryCall, row: Row, is_method: bool) -> Iterator[Wait]:
        one = call.instruction
        source = next((selected(function, one, selector, is_method) for selector in selectors(row, "of")), None)
        if source is None:
            return
        if any(self._may_hold(function, one, selector, True, is_method) for selector in selectors(row, "asynchronous")):
            return
        space = self._result(function, one)
        if "host" in space and "device" not in space and self.reasons(function, source):
            yield Wait(function, one, READ, call.name, source)
        elif "device" in space and row.library == "torch" and self._is_fresh(function, source) and not self._casts(function, one, row):
            yield Wait(function, one, UPLOAD, call.name, source)

    def _casts(self, function: Function, one: Instruction, row: Row) -> bool:
        """``x.to(y.dtype)``."""
        named = [selected(function, one, selector, True) for selector in selectors(row, "device")]
        return any(register is not None and is_element_type(self.facts, function, register) for register in named)

    def _made(self, function: Function, call: LibraryCall, row: Row, is_method: bool) -> Iterator[Wait]:
        yield from self._numbers(function, call, row, is_method)
        data = next((selected(function, call.instruction, selector, is_method) for selector in selectors(row, "data")), None)
        if data is None or row.library != "torch" or not self._is_put_there(function, call.instruction):
            return
        given = argument_registers(function, call.instruction)
        if makes_nothing(function, call.instruction) or is_shape(self.graph, function, [call.name], given):
            return
        if not self.reasons(function, data):
            yield Wait(function, call.instruction, UPLOAD, call.name, data)

    def _numbers(self, function: Function, call: LibraryCall, row: Row, is_method: bool) -> Iterator[Wait]:
        for selector in selectors(row, "scalars"):
            register = selected(function, call.instruction, selector, is_method)
            if register is None or is_of_host(self.facts, function, call.instruction, register):
                continue
            if any(isinstance(one, (Constant, Scalar)) for one in self.facts.values(function, register).values):
                continue  # it may be a plain number, as it has to be
            if self.reasons(function, register):
                yield Wait(function, call.instruction, NUMBER, call.name, register, str(row.get("instead", "")))

    def _computes(self, function: Function, call: LibraryCall, row: Row, is_method: bool) -> Iterator[Wait]:
        one = call.instruction
        yield from self._numbers(function, call, row, is_method)
        if row.get("compares"):
            given = argument_registers(function, one)
            for _, register in given:  # what is given alone is gone over: a list, unless a tensor was computed
                if self.reasons(function, register) and (len(given) > 1 or self._is_computed(function, register)):
                    yield Wait(function, one, CAST, call.name, register)
        elif self._makes_wait(function, one, row, is_method) or (row.get("checks_as_made") and self._is_made_to_check(function, one)):
            yield from self._fetched(function, call, row, is_method)

    def _makes_wait(self, function: Function, one: Instruction, row: Row, is_method: bool) -> bool:
        return makes_wait(
            row,
            lambda selector: selected(function, one, selector, is_method),
            lambda register: constants_of(self.facts, function, register),
            lambda register: bool(self.reasons(function, register)),
        )

    def _fetched(self, function: Function, call: LibraryCall, row: Row, is_method: bool) -> Iterator[Wait]:
        """A call that itself looks at what it is given, or computes; nothing where the program does so for what it says."""
        one = call.instruction
        if row.get("instead") and self._is_caught(function, one):
            return
        operands = [selected(function, one, selector, is_method) for selector in selectors(row, "waits_on")]
        operands += [register for _, register in argument_registers(function, one)]
        operands += [one[3]] if is_method and one[0] == op.INVOKE else []
        shown = next((register for register in operands if register is not None and self.reasons_of_held(function, register)), None)
        if shown is not None:
            yield Wait(function, one, SIZE if row.get("sized") else FETCH, call.name, shown, str(row.get("instead", "")))

    def _is_caught(self, function: Function, one: Instruction) -> bool:
        """Whether the program catches what a check would raise: then it asks for it."""
        handler = function.code.handlers.get(function.blocks[one])
        for each in function.code.blocks[handler] if handler is not None else ():
            kinds = function.definitions[each[4]] if each[0] == op.CATCHES and each[4] >= 0 else None
            parts = kinds[4:] if kinds is not None and kinds[0] == op.BUILD else each[4:5] if kinds is not None else ()
            values = (value for part in parts for value in self.facts.values(function, part).values)
            if any(isinstance(value, External) and value.name.rpartition(".")[2] in function.known("raised") for value in values):
                return True
        return False

    def _checked(self, function: Function, call: LibraryCall, row: Row) -> Iterator[Wait]:
        """``Normal(mean, deviation)``, which asks whether all numbers are fit, unless the call or the whole program says otherwise."""
        one = call.instruction
        if self._checks(function, one, row) or self._makes_wait(function, one, row, False):
            yield from self._fetched(function, call, row, False)
        elif row.get("uploads") and any(self.reasons(function, register) for _, register in argument_registers(function, one)):
            numbers = (register for _, register in argument_registers(function, one) if _is_number(function, register))
            yield from (Wait(function, one, UPLOAD, call.name, register) for register in numbers)

    def _checks(self, function: Function, one: Instruction, row: Row) -> bool:
        """Whether an object is made to check what it is given, here and later on."""
        given = [selected(function, one, selector, False) for selector in selectors(row, "checks")]
        is_said = any(register is not None for register in given)
        is_asked = any(self._may_hold(function, one, selector, True, False) for selector in selectors(row, "checks"))
        is_off = any(map(self.facts.program.mentioning, function.known("no-checks")))
        return bool(row.get("checks")) and not (is_said and not is_asked) and not is_off

    def _is_made_to_check(self, function: Function, one: Instruction) -> bool:
        """Whether the object whose method is called was made to check what it is given, wherever that was."""
        made = self.makers(function, one)
        return any(selectors(row, "checks") and self._checks(each.function, each.instruction, row) for each, row in made)

    def makers(self, function: Function, one: Instruction) -> Iterator[tuple[Site, Row]]:
        """The calls that made the object whose method is called, wherever that was, each with its row."""
        node = self.facts.values(function, one[3])
        made = [place for value in node.values if isinstance(value, LibraryObject) for place in [*node.trace(value)][-1:]]
        for each in made:
            for call in self.graph.of_call(each.function, each.instruction).libraries:
                if call.row is not None:
                    yield each, call.row

    def _is_put_there(self, function: Function, one: Instruction) -> bool:
        """Whether a factory has an argument for the device."""
        values = (value for value in self.facts.values(function, one[2]).values if isinstance(value, Memory))
        return any(value.space == "device" and value.evidence in ("literal", "asked") for value in values)

    def _result(self, function: Function, one: Instruction) -> set[str]:
        return {value.space for value in self.facts.values(function, one[2]).values if isinstance(value, Memory)}

    def _may_hold(self, function: Function, one: Instruction, selector: Selector, wanted: bool, is_method: bool) -> bool:
        register = selected(function, one, selector, is_method)
        given = function.definitions[register] if register is not None and register >= 0 else None
        if given is None or register is None or given[0] == op.CONST:
            return given is not None and function.unit.ir.constants[given[3]] is wanted
        held = self.facts.values(function, register).values
        return wanted and any(isinstance(value, LibraryObject) and value.kind == "stream" for value in held)

    def _is_fresh(self, function: Function, register: int) -> bool:
        """Whether a register holds what the call before has made on the host, with elements to move, or what an object keeps there."""
        one = function.definitions[register]
        if one is not None and one[0] == op.PARAM:
            return not function.is_cpp and hands_filled(self.graph, function, one)
        if one is not None and one[0] == op.ATTR and not function.is_cpp:
            return self._is_kept_on_host(function, register)
        if one is None or one[0] not in (op.CALL, op.INVOKE, op.BINARY) or "host" not in self._result(function, one):
            return False
        rows = (call.row for call in self.graph.of_call(function, one).libraries)
        return not (makes_nothing(function, one) and any(row is not None and row.effect == "factory" for row in rows))

    def _is_copied_to_host(self, function: Function, one: Instruction) -> bool:
        """``host[place] = x`` of a device. A mask or a list as the place refuses more than one number, and ``host[place] += x`` computes on
        the host."""
        if not self._is_kept_on_host(function, one[2], pinned=True) or not self.reasons(function, one[4]):
            return False
        given = function.definitions[one[4]]
        if (given is not None and given[0] == op.INPLACE) or any(
            _is_on_host(value) for value in self.facts.values(function, one[4]).values
        ):
            return False
        return all(self._is_place(function, part) for part in parts_of(function, one[3]))

    def _is_place(self, function: Function, register: int) -> bool:
        made = function.definitions[register] if register >= 0 else None
        is_slice = made is not None and made[0] == op.SLICE
        return is_slice or (are_plain(self.facts.values(function, register).values) and not is_mask(self.facts, function, register))

    def _is_kept_on_host(self, function: Function, register: int, pinned: bool = False) -> bool:
        """Whether a register holds nothing but tensors of the host, where it may not be those that are ``pinned``: nobody moves what it
        holds, as a module moves its buffers."""
        held = [value for value in self.facts.values(function, register).values if not _is_of_module(value)]
        return bool(held) and all(
            isinstance(value, Memory) and value.space == "host" and value.type == TENSOR and (pinned or value.pinning != "pinned")
            for value in held
        )

    # --- what the language does

    def _operators(self, function: Function) -> Iterator[Wait]:
        for one in function.by_opcode[op.FORMAT]:
            yield from (Wait(function, one, CAST, "format", register) for register in op.reads(one) if self._is_shown(function, register))
        for one in (*function.by_opcode[op.BINARY], *function.by_opcode[op.INVOKE]):
            yield from self._formatted(function, one)
        for one in function.by_opcode[op.BRANCH]:
            if self._is_truth_asked(function, one[2]):
                yield Wait(function, one, CAST, "bool", one[2])
        for one in function.by_opcode[op.UNARY]:
            if function.unit.ir.constants[one[3]] == "not" and self._is_truth_asked(function, one[4]):
                yield Wait(function, one, CAST, "bool", one[4])
        for one in function.by_opcode[op.ITEM]:
            yield from self._indexed(function, one)
        for one in function.by_opcode[op.SET_ITEM]:
            yield from self._assigned(function, one)

    def _is_truth_asked(self, function: Function, register: int) -> bool:
        """Whether a test of what a register holds asks a tensor of a device for its number, and not whether something is there."""
        if may_be_absent(function, register) or is_text_compared(function, register) or self._is_flag(function, register):
            return False
        return bool(self.reasons(function, register))

    def _is_flag(self, function: Function, register: int) -> bool:
        """Whether a register holds an element of a part that unknown code gives beside others, and that is None at times: these are
        lists, of what was found in each image."""
        element = function.definitions[register]
        source = function.definitions[element[3]] if element is not None and element[0] == op.NEXT else None
        if source is None or source[0] != op.ITER:
            return False
        asked = (use for use in function.uses[source[3]] if use[0] == op.COMPARE and function.text(use[3]) in ("is", "is not"))
        is_optional = any(function.definitions[use[5]] is not None and use[4] == source[3] for use in asked)
        given = behind(function, [source[3]], lambda one: op.reads(one) if one[0] in (op.PHI, op.COPY, op.UNPACK) else ())
        unknown = self.graph.calls(function).unknown
        return is_optional and any(one in unknown for one in given)

    def _formatted(self, function: Function, one: Instruction) -> Iterator[Wait]:
        if one[0] == op.BINARY and function.text(one[3]) == "%" and isinstance(function.constant(one[4]), str):
            built = function.definitions[one[5]]
            operands = op.reads(built) if built is not None and built[0] == op.BUILD else [one[5]]
        elif one[0] == op.INVOKE and function.text(one[4]) == "format" and isinstance(function.constant(one[3]), str):
            operands = [register for _, register in argument_registers(function, one)]
        else:
            return
        yield from (Wait(function, one, CAST, "format", register) for register in operands if self._is_shown(function, register))

    def _is_shown(self, function: Function, register: int) -> bool:
        """Whether a tensor of a device is made into text. What may be anything is text as soon as a tensor, unless training computes it."""
        found = self.reasons(function, register)
        if any(isinstance(value, Unknown) for value in self.facts.values(function, register).values):
            found = [reason for reason in found if reason.removeprefix(UNSURE) not in ("asked", "literal", INPUT)]
        return bool(found)

    def _indexed(self, function: Function, one: Instruction) -> Iterator[Wait]:
        index = function.definitions[one[4]]
        held = self.facts.values(function, one[3]).values
        if index is None:
            return
        if self.all_loops and any(isinstance(value, Container) and value.kind == "list" for value in held):
            if index[0] != op.SLICE and self.reasons(function, one[4], True):
                yield Wait(function, one, READ, OF_LIST, one[4])  # a list asks its index for the number
        elif any(isinstance(value, Memory) for value in held):
            if index[0] != op.SLICE:
                yield from self._tensor_indexed(function, one)
            for register in index[3:5] if index[0] == op.SLICE else ():
                if register >= 0 and "literal" in self.reasons(function, register):
                    yield Wait(function, one, SIZE, "slicing", register)

    def _tensor_indexed(self, function: Function, one: Instruction) -> Iterator[Wait]:
        parts = parts_of(function, one[4])
        reasons = self.reasons(function, one[3])
        for part in parts:
            if self.reasons(function, part):
                if is_mask(self.facts, function, part) or (part == one[4] and not self._may_be_on_device(function, one[3])):
                    yield Wait(function, one, SIZE, "indexing", part)
            elif reasons and is_uploaded(self.facts, function, part):  # only a tensor takes a list or a tensor as an index
                yield Wait(function, one, UPLOAD, "indexing", part)

    def _may_be_on_device(self, function: Function, register: int) -> bool:
        return any(isinstance(value, Memory) and value.space == "device" for value in self.facts.values(function, register).values)

    def _assigned(self, function: Function, one: Instruction) -> Iterator[Wait]:
        """``x[rows] = 1.0`` uploads the number, unless the rows are a mask; ``x[mask] = y`` fetches how many there are. What a tensor of
        the host is given of a device is copied there at once."""
        if not self.reasons(function, one[2]):
            if self._is_copied_to_host(function, one):
                yield Wait(function, one, READ, "assignment", one[4])
            return
        for part in parts_of(function, one[3]):
            if not self.reasons(function, part):
                continue
            if is_mask(self.facts, function, part):
                if self.reasons(function, one[4]):
                    yield Wait(function, one, SIZE, "indexing", part)
            elif _is_number(function, one[4]) and is_of_numbers(self.facts, function, part):
                yield Wait(function, one, UPLOAD, "assignment", one[4], _SCATTER)


def _is_number(function: Function, register: int) -> bool:
    one = function.definitions[register] if register >= 0 else None
    value = function.unit.ir.constants[one[3]] if one is not None and one[0] == op.CONST else None
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_on_host(value: Object) -> bool:
    return isinstance(value, Memory) and value.space == "host"


def _is_of_module(value: Object) -> bool:
    """Whether an attribute may be what the library's class of modules has by the name, as each name may."""
    return isinstance(value, External) and isinstance(value.receiver, Instance)


def _is_unknown(function: Function, value: Object) -> bool:
    """Whether nothing says where a value is: of C++ the type says that it is a tensor."""
    return isinstance(value, Unknown) or (function.is_cpp and isinstance(value, Memory) and value.space == "unknown")
