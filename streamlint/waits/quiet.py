"""Whether an instruction may put work on a stream: what is not known to leave the streams alone may."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Container, Elements, Group, Memory, Rest, Scalar, Unknown, Varargs
from streamlint.facts.graph.call_graph import CallGraph, Edge, LibraryCall
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.waits.operands import is_element_type, selected, selectors

_QUIET_OPCODES = frozenset(
    {
        *(op.CONST, op.PARAM, op.UNDEF, op.PHI, op.NAME, op.SET_NAME, op.DEL_NAME, op.LOAD, op.STORE, op.BIND, op.UNBIND, op.ATTR),
        *(op.SET_ATTR, op.DEL_ATTR, op.DEL_ITEM, op.SLICE, op.BUILD, op.DICT, op.FORMAT, op.APPEND, op.PUT, op.FUNCTION, op.IMPORT),
        *(op.ITER, op.MORE, op.UNPACK, op.CAUGHT, op.CATCHES, op.MATCH, op.CAPTURE, op.COPY),
        *(op.DECLARE, op.ADDRESS, op.ADDRESS_NAME, op.ADDRESS_ATTR, op.ADDRESS_ITEM, op.DEREF, op.CAST, op.DESTROY, op.OUT, op.REBIND),
        *(op.JUMP, op.BRANCH, op.RETURN, op.RAISE, op.UNREACHABLE),
    }
)
_ARITHMETIC = frozenset({op.UNARY, op.BINARY, op.INPLACE, op.COMPARE})
_HANDED_ON = frozenset({"range", "super", "getattr", "enumerate", "zip", "reversed"})
_NUMBERS = frozenset({"float", "int", "bool", "complex", "str", "repr", "len", "isinstance", "hasattr", "callable"})
_HOST = ("none", "same", "view")
_WAITING = frozenset({"read", "query", "elapsed", "clock", "synchronize"})
_LAUNCHES_NOTHING = _WAITING | {"none"}
_MOST = 200
"""Registers that are looked at for one."""
_DEEPEST = 6
"""Operators between a value and the branch that it decides."""
_IN_CONTAINERS = (Container, Elements, Group, Varargs, Rest, Constant, Scalar)


class Quiet:
    """Answers for the functions of a program."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self._plain: set[tuple[Function, int]] = set()
        self._libraries: dict[Function, dict[Instruction, list[LibraryCall]]] = {}
        self._edges: dict[Function, dict[Instruction, list[Edge]]] = {}

    def edges(self, function: Function, one: Instruction) -> list[Edge]:
        """What leads from an instruction to the functions of the program that it runs at once."""
        found = self._edges.get(function)
        if found is None:
            found = self._edges[function] = {}
            for edge in self.graph.calls(function).edges:
                if edge.is_followed:
                    found.setdefault(edge.instruction, []).append(edge)
        return found.get(one, [])

    def entered(self, function: Function, one: Instruction) -> list[Function]:
        """The functions of the program that an instruction runs at once."""
        return [edge.callee for edge in self.edges(function, one)]

    def queues(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction may queue work, functions of the program that it enters aside."""
        opcode = one[0]
        if opcode in (op.CALL, op.INVOKE):
            return self._calls(function, one)
        if opcode in _QUIET_OPCODES:
            return False
        if opcode in _ARITHMETIC:
            return not self._is_of_host(function, one)
        if opcode in (op.ENTER, op.EXIT):
            return not self._is_of_quiet_scope(function, one)
        if opcode == op.NEXT:
            return not (function.is_cpp or self._goes_over_held(function, one))
        if opcode == op.ITEM:
            return not (self._is_fixed(function, one[4]) or self._is_count(function, one[4]) or self._is_container(function, one[3]))
        if opcode == op.SET_ITEM:
            return not (isinstance(function.constant(one[3]), str) or self._is_container(function, one[2]))
        return True

    def _is_of_quiet_scope(self, function: Function, one: Instruction) -> bool:
        """Whether a scope begins or ends that a library gives which only changes how it works: ``with torch.autocast("cuda")``."""
        made = function.definitions[one[3]] if one[3] >= 0 else None
        calls = self.library(function, made) if made is not None else []
        return bool(calls) and all(call.row is not None and call.row.effect == "none" for call in calls)

    def brief(self, function: Function, one: Instruction) -> int | None:
        """How many brief operations an instruction queues: passes over the elements of tensors, and new tensors, for which the device takes
        no longer than the host to start them. None where it may queue more than such."""
        if self.entered(function, one):
            return None
        if one[0] in _ARITHMETIC:
            return 1 if function.text(one[3]) not in ("@", "@=") else None
        if one[0] in (op.ITEM, op.SET_ITEM):
            return 1 if self._is_tensor(function, one[3 if one[0] == op.ITEM else 2]) else None
        calls = self.library(function, one) if one[0] in (op.CALL, op.INVOKE) else []
        rows = [(call, call.row) for call in calls if call.row is not None]
        if not rows or len(rows) < len(calls) or not all(self._is_brief(function, *each) for each in rows):
            return None
        return int(any(row.effect not in ("view", "same") for _, row in rows))

    def _is_brief(self, function: Function, call: LibraryCall, row: Row) -> bool:
        if row.library != "torch":
            return False
        if row.effect == "factory":
            return row.get("data") is None
        if row.effect == "transfer":
            named = [selected(function, call.instruction, selector, call.receiver is not None) for selector in selectors(row, "device")]
            return any(register is not None and is_element_type(self.facts, function, register) for register in named)
        return row.effect in ("view", "same") or (row.effect == "compute" and call.name in self.facts.models.marked("one-pass"))

    def _is_tensor(self, function: Function, register: int) -> bool:
        values = [value for value in self.facts.values(function, register).values if not isinstance(value, Unknown)]
        return bool(values) and all(isinstance(value, Memory) for value in values)

    def library(self, function: Function, one: Instruction) -> list[LibraryCall]:
        """What an instruction calls of libraries."""
        if function not in self._libraries:
            found = self._libraries[function] = {}
            for call in self.graph.calls(function).libraries:
                found.setdefault(call.instruction, []).append(call)
        return self._libraries[function].get(one, [])

    # --- values

    def is_plain(self, function: Function, register: int) -> bool:
        """Whether a register holds a number or a text of the host."""
        assumed: set[tuple[Function, int]] = set()
        waiting = [(function, register)]
        while waiting:
            holder, held = waiting.pop()
            if (holder, held) in assumed or (holder, held) in self._plain:
                continue
            one = holder.definitions[held] if held >= 0 else None
            if one is None or len(assumed) > _MOST:
                return False
            assumed.add((holder, held))
            if one[0] in (op.CONST, op.FORMAT) or self._is_number(holder, one) or self._is_known_plain(holder, held):
                continue
            if one[0] in (op.PHI, op.BINARY, op.INPLACE, op.UNARY, op.COMPARE):
                waiting += [(holder, part) for part in op.reads(one)]
                continue
            given = self._given(holder, one)
            if not given:
                return False
            waiting += given
        self._plain |= assumed
        return True

    def _given(self, function: Function, one: Instruction) -> list[tuple[Function, int]]:
        """What the functions of the program return that a call enters; empty where it may give something else."""
        callees = self.entered(function, one) if one[0] in (op.CALL, op.INVOKE, op.ATTR) else []
        if not callees or self.library(function, one) or one in self.graph.calls(function).unknown:
            return []
        if any(callee.code.flags & {"generator", "async"} or not callee.by_opcode[op.RETURN] for callee in callees):
            return []
        return [(callee, end[2]) for callee in callees for end in callee.by_opcode[op.RETURN]]

    def _is_known_plain(self, function: Function, register: int) -> bool:
        """Whether all that is known of a register are numbers and texts, whatever else unknown callers may give."""
        values = self.facts.values(function, register).values
        others = [value for value in values if not isinstance(value, (Constant, Scalar))]
        if not all(isinstance(value, Unknown) and value.reason == "caller" for value in others):
            return False
        return any(not isinstance(value, Constant) or value.value is not None for value in values if value not in others)

    def _is_number(self, function: Function, one: Instruction) -> bool:
        """Whether a call gives a number whatever it is called on."""
        if one[0] == op.INVOKE:
            return function.text(one[4]) in function.known("size", "number") and not self.entered(function, one)
        return one[0] == op.CALL and function.dotted(one[3]) in _NUMBERS and not self.entered(function, one)

    def _is_container(self, function: Function, register: int) -> bool:
        values = self.facts.values(function, register).values
        return bool(values) and all(isinstance(value, _IN_CONTAINERS) for value in values)

    def _goes_over_held(self, function: Function, one: Instruction) -> bool:
        """Whether the elements that a loop goes over are there already: numbers, or what a container holds."""
        source = function.definitions[one[3]]
        if source is None or source[0] != op.ITER:
            return False
        made = function.definitions[source[3]]
        if made is not None and self._is_view_of_mapping(function, made):
            return True
        values = self.facts.values(function, source[3]).values
        return bool(values) and all(isinstance(value, (Container, Constant, Scalar)) for value in values)

    def _is_view_of_mapping(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction gives the entries of a mapping: ``losses.items()``."""
        is_view = function.invokes(one, "gives-keys", "gives-values", "gives-entries")
        return is_view and len(one) == 6 and not self.entered(function, one)

    def _is_of_host(self, function: Function, one: Instruction) -> bool:
        """Whether an operator compares what things are, or works on numbers of the host: in C++ on one, and nothing known to be memory."""
        operator = function.text(one[3])
        if operator in ("is", "is not", "not", "!"):
            return True
        if operator in ("in", "not in") and self._is_container(function, one[5]):
            return self.is_plain(function, one[4])
        parts = op.reads(one)
        if function.is_cpp and any(self.is_plain(function, register) for register in parts):
            return not any(isinstance(value, Memory) for register in parts for value in self.facts.values(function, register).values)
        return all(self.is_plain(function, register) for register in parts)

    def _is_count(self, function: Function, index: int) -> bool:
        """Whether an index is a number that ``range`` or ``enumerate`` counts up: it takes a part in place."""
        one = function.definitions[index]
        values = list(self.facts.values(function, index).values) if one is not None and one[0] in (op.NEXT, op.UNPACK) else []
        return bool(values) and all(isinstance(value, Scalar) for value in values)

    def _is_fixed(self, function: Function, index: int) -> bool:
        """Whether an index takes a part that is seen in place: constants and slices."""
        waiting = [index]
        while waiting:
            one = function.definitions[waiting.pop()]
            if one is not None and one[0] == op.BUILD:
                waiting += one[4:]
            elif one is not None and one[0] == op.UNARY:
                waiting.append(one[4])
            elif one is None or not (one[0] == op.SLICE or (one[0] == op.CONST and not isinstance(function.constant(one[2]), bool))):
                return False
        return True

    # --- calls

    def _calls(self, function: Function, one: Instruction) -> bool:
        calls = self.library(function, one)
        is_known = bool(calls) and all(call.row is not None and call.row.effect in _LAUNCHES_NOTHING for call in calls)
        is_unknown = one in self.graph.calls(function).unknown and not is_known
        if self._is_view_of_mapping(function, one):
            return False
        if (
            one[0] == op.INVOKE
            and function.text(one[4]) in function.known("to-host", "size", "listing")
            and not self.entered(function, one)
        ):
            return any(call.row is not None and self._works(function, call) for call in calls)
        if is_unknown or not (calls or self.entered(function, one)):
            return not (self._only_tells(function, one) or self._looks_up(function, one))
        return any(self._works(function, call) for call in calls)

    def _only_tells(self, function: Function, one: Instruction) -> bool:
        """Whether unknown code takes numbers and texts alone, and returns nothing that is used: a log, a bar, a setting."""
        given = one[6 if one[0] == op.INVOKE else 5 :]
        return bool(given) and not function.uses[one[2]] and all(self._is_plain_data(function, register) for register in given)

    def _looks_up(self, function: Function, one: Instruction) -> bool:
        """Whether a mapping that nothing else is known of is asked for the entry of a text: ``settings.get("rate", 0.1)``."""
        given = one[6:] if function.invokes(one, "gives-entry") and not self.entered(function, one) else ()
        keys = self.facts.values(function, given[0]).values if given and given[0] >= 0 else ()
        is_text = any(isinstance(value, Constant) and isinstance(value.value, str) for value in keys)
        return is_text and all(self._is_plain_data(function, register) for register in given)

    def _is_plain_data(self, function: Function, register: int) -> bool:
        """Whether a register holds a number or a text, or a display of such."""
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] in (op.BUILD, op.DICT):
            parts = one[4:] if one[0] == op.BUILD else one[3:]
            return all(part >= 0 and self._is_plain_data(function, part) for part in parts)
        return self.is_plain(function, register)

    def _works(self, function: Function, call: LibraryCall) -> bool:
        one, row = call.instruction, call.row
        if row is None:
            return self._works_without_row(function, call)
        if row.effect in _LAUNCHES_NOTHING:
            return False
        if row.effect in _HOST:
            return not (row.library == "python" or call.name.startswith("torch.Tensor.")) or row.get("part") == "contiguous"
        if row.effect == "transfer":
            return row.get("to") != "host" or row.library != "torch"
        return row.effect != "compute" or call.receiver is not None or not self._is_given_plain(function, one)

    def _works_without_row(self, function: Function, call: LibraryCall) -> bool:
        name = call.name.removeprefix("builtins.")
        if (
            name in _HANDED_ON
            or name in self.facts.models.marked("hands-on")
            or name.startswith("container.")
            or self._only_tells(function, call.instruction)
        ):
            return False
        given = call.instruction[6 if call.instruction[0] == op.INVOKE else 5 :]
        if self.facts.is_of_host(function, call.name) and not self.facts.hands_function(function, given):
            return False
        is_of_host = call.receiver is None or isinstance(call.receiver, (Constant, Scalar))
        return not (call.name.startswith("builtins.") and is_of_host and self._is_given_plain(function, call.instruction))

    def _is_given_plain(self, function: Function, one: Instruction) -> bool:
        return all(self.is_plain(function, register) for register in one[6 if one[0] == op.INVOKE else 5 :])


def is_only_asked(function: Function, one: Instruction, depth: int = _DEEPEST) -> bool:
    """Whether a value does nothing but decide a branch: the host has it, or waits for it there, and nothing is left to wait for."""
    uses = function.uses[one[2]] if depth and one[0] in _ARITHMETIC else ()
    return bool(uses) and all(use[0] == op.BRANCH or is_only_asked(function, use, depth - 1) for use in uses)
