"""Members and entries of tables that a text names: the parameters that are such texts, and what a call leads to that was given one."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import arguments_of, uncast
from streamlint.facts.code.objects import Constant, Text, Unknown
from streamlint.facts.files.autograd import given_for, offset_of
from streamlint.facts.graph.call_graph import CallGraph, Edge
from streamlint.facts.graph.tables import Tables, key_of, lookup_of
from streamlint.facts.values.flags import Flag, Flags, Holds, text_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

_DEEPEST = 4
"""Functions that hand a name on to one another."""


class NamedMembers:
    """Answers for the functions of a program: ``getattr(callback, name)()``, ``handlers[name]()``, which is called for with the name."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.tables = Tables(graph)
        self._parameters: dict[Function, frozenset[int]] = {}

    def parameters(self, function: Function, depth: int = _DEEPEST) -> frozenset[int]:
        """The parameters of which the text names a member that is taken, here or in what they are passed to."""
        if function in self._parameters or depth == 0 or function.is_cpp:
            return self._parameters.get(function, frozenset())
        self._parameters[function] = frozenset()  # while it is asked
        calls = function.by_opcode[op.CALL]
        keys = (key_of(lookup) for one in calls if (lookup := lookup_of(function, one[3])) is not None)
        found = {index for name in (*(_name_of(function, one) for one in calls), *keys) for index in self._named(function, name)}
        for opcode in (op.CALL, op.INVOKE) if len(function.code.parameters) > len(found) else ():
            for call in function.by_opcode[opcode]:
                given = {held: names for held, _ in arguments_of(function, call) if (names := self._named(function, held))}
                if any(not names <= found for names in given.values()):
                    found |= self._through_call(function, call, given, depth)
        self._parameters[function] = frozenset(found)
        return self._parameters[function]

    def is_meant(self, function: Function, flags: Flags, edge: Edge) -> bool:
        """Whether a call with these flags may enter what an edge leads to: not if it takes another member by its name."""
        return edge.instruction[0] != op.CALL or self._is_taken(function, flags, edge.instruction[3], edge.callee)

    def _is_taken(self, function: Function, flags: Flags, register: int, called: Function) -> bool:
        """Whether a register that may be a function is that function with these flags: not if another one is taken by its name."""
        lookup = lookup_of(function, register)
        if lookup is not None and (keys := self._keys(function, flags, key_of(lookup))):
            texts = self.tables.texts(function, lookup, called)
            return texts is None or not texts.isdisjoint(keys)
        taken = function.definitions[uncast(function, register)] if flags and register >= 0 else None
        if taken is not None and taken[0] == op.PARAM:
            return Holds(taken[3], called) not in flags
        name = _name_of(function, taken) if taken is not None and taken[0] == op.CALL else op.NONE
        text = text_of(function, flags, name) if name != op.NONE else None
        return text is None or called.code.name == text or not self._may_be(function, name, called.code.name)

    def known_from_call(self, caller: Function, known: Flags, call: Instruction, callee: Function) -> Flags:
        """The functions that parameters which are called are not, as the caller takes what it hands over by its name."""
        found: dict[Flag, bool | str] = {}
        for one in callee.by_opcode[op.PARAM] if call[0] in (op.CALL, op.INVOKE) and not callee.is_cpp else ():
            register = given_for(caller, call, callee, one[3]) if any(use[0] == op.CALL for use in callee.uses[one[2]]) else None
            if register is not None and self._is_picked(caller, known, register):
                values = list(self.graph.facts.values(caller, register).values)
                able = [each.function for each in self.graph.facts.functions_in(values)]
                found.update({Holds(one[3], each): False for each in able if not self._is_taken(caller, known, register, each)})
        return found

    def _is_picked(self, function: Function, flags: Flags, register: int) -> bool:
        """Whether a register is taken by a name, here or by who passed it over."""
        one = function.definitions[uncast(function, register)] if register >= 0 else None
        if one is not None and one[0] == op.PARAM:
            return any(isinstance(flag, Holds) and flag.parameter == one[3] for flag in flags)
        return lookup_of(function, register) is not None or (one is not None and one[0] == op.CALL and _name_of(function, one) != op.NONE)

    def _keys(self, function: Function, flags: Flags, key: int) -> set[str]:
        """The texts that a key may be: the one that the call has told, or those that callers in view give; none where others are known."""
        if (text := self.tables.text(function, flags, key)) is not None:
            return {text}
        held = [one for one in self.graph.facts.values(function, key).values if not (isinstance(one, Unknown) and one.reason == "caller")]
        texts = {one.value for one in held if isinstance(one, Constant) and isinstance(one.value, str)}
        return texts if len(texts) == len(held) else set()

    def _may_be(self, function: Function, name: int, called: str) -> bool:
        """Whether a register may hold the name of a function, in whichever call."""
        for value in self.graph.facts.values(function, name).values:
            if (isinstance(value, Constant) and value.value == called) or (isinstance(value, Text) and called.startswith(value.prefix)):
                return True
        return False

    def _named(self, function: Function, name: int) -> set[int]:
        """The parameters that a name is made of."""
        one = function.definitions[name] if name >= 0 else None
        if one is None or one[0] not in (op.BINARY, op.FORMAT, op.PARAM):
            return set()
        return {one[3]} if one[0] == op.PARAM else {index for part in op.reads(one) for index in self._named(function, part)}

    def _through_call(self, function: Function, call: Instruction, given: dict[int, set[int]], depth: int) -> set[int]:
        """The parameters in the arguments of a call, by their registers, that name members for what it enters."""
        found = set[int]()
        for edge in self.graph.of_call(function, call).edges:
            wanted, offset = self.parameters(edge.callee, depth - 1), offset_of(function, call, edge.callee)
            names = {edge.callee.code.parameters[index].name for index in wanted}
            for place, (held, kind) in enumerate(arguments_of(function, call)) if wanted and offset is not None else ():
                if held in given and (kind in names or (kind is None and place + (offset or 0) in wanted)):
                    found |= given[held]
        return found


def _name_of(function: Function, one: Instruction) -> int:
    """The register of the name by which a call takes a member; NONE for other calls."""
    return one[6] if len(one) > 6 and function.dotted(one[3]) == "getattr" else op.NONE
